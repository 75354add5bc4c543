"""The cases' config.json, written as a hub folder would have them."""

VOCAB = 64
ABSENT = object()  # as a change: leave the key out


def deepseek(**changes):
    config = {
        "architectures": ["DeepseekV3ForCausalLM"],
        "model_type": "deepseek_v3",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "first_k_dense_replace": 1,
        "hidden_act": "silu",
        "hidden_size": 32,
        "initializer_range": 0.02,
        "intermediate_size": 40,
        "kv_lora_rank": 14,
        "max_position_embeddings": 128,
        "moe_intermediate_size": 10,
        "moe_layer_freq": 1,
        "n_group": 4,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "norm_topk_prob": True,
        "num_attention_heads": 3,
        "num_experts_per_tok": 3,
        "num_hidden_layers": 3,
        "num_key_value_heads": 3,
        "num_nextn_predict_layers": 0,
        "q_lora_rank": 18,
        "qk_nope_head_dim": 12,
        "qk_rope_head_dim": 8,
        "rms_norm_eps": 1e-06,
        "rope_interleave": True,
        "rope_theta": 10000,
        "routed_scaling_factor": 2.5,
        "scoring_func": "sigmoid",
        "tie_word_embeddings": False,
        "topk_group": 2,
        "topk_method": "noaux_tc",
        "torch_dtype": "float32",
        "use_cache": True,
        "v_head_dim": 10,
        "vocab_size": VOCAB,
    }
    config.update(changes)
    return {k: v for k, v in config.items() if v is not ABSENT}


def qwen3(**changes):
    config = {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": 0,
        "decoder_sparse_step": 1,
        "eos_token_id": 1,
        "head_dim": 12,
        "hidden_act": "silu",
        "hidden_size": 32,
        "initializer_range": 0.02,
        "intermediate_size": 40,
        "max_position_embeddings": 128,
        "mlp_only_layers": [],
        "moe_intermediate_size": 10,
        "norm_topk_prob": True,
        "num_attention_heads": 4,
        "num_experts": 8,
        "num_experts_per_tok": 3,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "output_router_logits": False,
        "rms_norm_eps": 1e-06,
        "rope_scaling": None,
        "rope_theta": 1000000.0,
        "router_aux_loss_coef": 0.001,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "use_cache": True,
        "use_sliding_window": False,
        "vocab_size": VOCAB,
    }
    config.update(changes)
    return config
