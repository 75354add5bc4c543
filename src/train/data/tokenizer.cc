#include "train/data/tokenizer.h"

#include <numeric>

#include "base/error.h"
#include "base/hash.h"
#include "train/data/sentencepiece.h"

namespace rondo {
namespace {

class ByteTokenizer final : public Tokenizer {
 public:
  ByteTokenizer() : bytes_(256, '\0') { std::iota(bytes_.begin(), bytes_.end(), '\0'); }

  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    out.reserve(out.size() + text.size());
    for (const char c : text) out.push_back(static_cast<unsigned char>(c));
  }
  std::string_view bytes_of(int64_t id) const override {
    return id >= 0 && id < 256 ? std::string_view(bytes_).substr(id, 1) : std::string_view();
  }
  int32_t vocab_size() const override { return 257; }
  int32_t eod_id() const override { return 256; }
  std::string kind() const override { return "bytes"; }
  std::string_view model() const override { return {}; }
  uint64_t fingerprint() const override { return hash64("bytes, end of document 256"); }

 private:
  std::string bytes_;  // bytes_[i] is byte i
};

}  // namespace

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> out;
  encode(text, out);
  return out;
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string out;
  for (const int32_t id : ids) out += bytes_of(id);
  return out;
}

std::unique_ptr<Tokenizer> make_byte_tokenizer() {
  return std::make_unique<ByteTokenizer>();
}

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& name) {
  if (name == "bytes") return make_byte_tokenizer();
  if (!fs::exists(name))
    fail_input("tokenizer \"{}\": it must be `bytes` or an existing SentencePiece .model file",
               name);
  return make_sentencepiece(read_file(name), name);
}

std::unique_ptr<Tokenizer> make_tokenizer(const std::string& kind, std::string model,
                                          const std::string& source) {
  if (kind == "bytes") return make_byte_tokenizer();
  if (kind != "sentencepiece")
    fail_input("{}: tokenizer \"{}\"; it must be \"bytes\" or \"sentencepiece\"", source, kind);
  return make_sentencepiece(std::move(model), source);
}

}  // namespace rondo
