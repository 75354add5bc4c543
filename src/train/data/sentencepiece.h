// SentencePiece: tokenizers that are learned from text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "train/data/text_files.h"
#include "train/data/tokenizer.h"

namespace rondo {

// From the bytes of a .model file. InputError, beginning with `source`, when they are none, or when
// the model would lose bytes: it needs the 256 byte pieces (byte_fallback), identity normalisation,
// no added prefix, all white space kept, and a piece for the end of a text.
std::unique_ptr<Tokenizer> make_sentencepiece(std::string model, const std::string& source);

struct SentencePieceTraining {
  int64_t vocab_size = 4096;           // 256 bytes, 2 special pieces, characters and learned pieces
  std::string algorithm = "bpe";       // or "unigram"
  double character_coverage = 0.9995;  // share of the text whose characters get a piece of their
                                       // own; the rest is spelled in bytes
  uint64_t most_bytes = 256 << 20;     // of longer input, an even choice of pieces of up to 4 KiB
};

struct TrainedSentencePiece {
  std::string model;  // the bytes of the .model file; same input, same bytes
  uint64_t input_bytes = 0, used_bytes = 0;
};

// InputError when there is no text, or when it does not suit the vocabulary (too small for its
// characters, too large for its text).
TrainedSentencePiece train_sentencepiece(const std::vector<TextFile>& files,
                                         const SentencePieceTraining& training);

}  // namespace rondo
