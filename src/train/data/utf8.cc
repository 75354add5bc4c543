#include "train/data/utf8.h"

namespace rondo {

size_t utf8_character(std::string_view text) {
  if (text.empty()) return 0;
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = at(0);
  if (first < 0x80) return 1;
  // The second byte's range rules out overlong forms, surrogates and what lies above U+10FFFF.
  unsigned low = 0x80, high = 0xBF;
  size_t length = 0;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  }
  if (length == 0 || text.size() < length || at(1) < low || at(1) > high) return 0;
  for (size_t i = 2; i < length; ++i)
    if (at(i) < 0x80 || at(i) > 0xBF) return 0;
  return length;
}

size_t utf8_prefix(std::string_view text) {
  size_t valid = 0;
  while (const size_t length = utf8_character(text.substr(valid))) valid += length;
  return valid;
}

}  // namespace rondo
