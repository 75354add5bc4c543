// UTF-8 as far as packing needs it. Text is bytes; nothing here changes any.
#pragma once

#include <cstddef>
#include <string_view>

namespace rondo {

// The bytes (1 to 4) of the character at the front of `text`, or 0 when there is none: overlong
// forms, surrogates and values above U+10FFFF are none.
size_t utf8_character(std::string_view text);

// How many bytes at the front are whole characters; text.size() when all of it is valid.
size_t utf8_prefix(std::string_view text);

}  // namespace rondo
