"""Reference numbers for the engine's tests, made with PyTorch and transformers."""
