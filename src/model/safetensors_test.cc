#include "model/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "model/model_testing.h"

namespace rondo {
namespace {

class Safetensors : public testing::Test {
 protected:
  std::string path_ = testing::TempDir() + "rondo_" +
                      testing::UnitTest::GetInstance()->current_test_info()->name() +
                      ".safetensors";
  ~Safetensors() override { fs::remove(path_); }

  void write_raw(uint64_t length, const std::string& rest) {
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    write_file_atomic(path_, bytes + rest);
  }
  // What a file of this header and so many bytes of data is refused with, without its path.
  std::string refusal(const std::string& header, size_t data = 0) {
    write_raw(header.size(), header + std::string(data, 'x'));
    return refusal();
  }
  std::string refusal() {
    const std::string message = message_of([&] { SafetensorsFile file(path_); });
    EXPECT_TRUE(message == "no error" || message.starts_with(path_ + ": ")) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message == "no error" ? message : message.substr(path_.size() + 2);
  }
};

TEST_F(Safetensors, ReadsBackWhatItWrote) {
  const std::vector<float> values = {1, -2.5f, 0, 3, 4, 5};
  const std::vector<SafetensorsItem> items = {
      {"b", DType::kF32, {2, 3}, [&](std::byte* out) { std::memcpy(out, values.data(), 24); }},
      {"a", DType::kU8, {3}, [&](std::byte* out) { std::memcpy(out, "xyz", 3); }},
      {"none", DType::kBF16, {0, 4}, [](std::byte*) {}},
      {"scalar", DType::kU16, {}, [](std::byte* out) { std::memcpy(out, "hi", 2); }}};
  write_safetensors(path_, items, {{"format", "pt"}});
  const std::string bytes = read_file(path_);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(bytes[8], '{');
  EXPECT_FALSE(fs::exists(path_ + ".tmp"));

  const SafetensorsFile file(path_);
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  ASSERT_EQ(file.tensors().size(), 4u);
  const SafetensorsFile::Entry& b = file.tensors().at("b");
  EXPECT_EQ(b.dtype, DType::kF32);
  EXPECT_EQ(b.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(b.data, values.data(), 24), 0);
  EXPECT_EQ(std::memcmp(file.tensors().at("a").data, "xyz", 3), 0);
  EXPECT_EQ(file.tensors().at("none").bytes, 0);
  EXPECT_EQ(std::memcmp(file.tensors().at("scalar").data, "hi", 2), 0);

  write_safetensors(path_, items, {{"format", "pt"}});
  EXPECT_EQ(read_file(path_), bytes);
}

TEST_F(Safetensors, LeavesTheOldFileWhenWritingFails) {
  write_file_atomic(path_, "old");
  EXPECT_THROW(
      write_safetensors(path_, {{"a", DType::kU8, {1}, [](std::byte*) { fail_input("no"); }}}),
      InputError);
  EXPECT_EQ(read_file(path_), "old");
  EXPECT_FALSE(fs::exists(path_ + ".tmp"));
}

TEST_F(Safetensors, RefusesAHeaderThatDoesNotFit) {
  write_file_atomic(path_, "abc");
  EXPECT_EQ(refusal(),
            "has 3 bytes; a safetensors file begins with 8 that give its header's length");
  write_file_atomic(path_, "");
  EXPECT_EQ(refusal(),
            "has 0 bytes; a safetensors file begins with 8 that give its header's length");
  write_raw(3, "{}");
  EXPECT_EQ(refusal(), "the header's length is 3; only 2 bytes follow");
  write_raw(100'000'000, "{}");
  EXPECT_EQ(refusal(), "the header's length is 100000000; only 2 bytes follow");
  write_raw(100'000'001, "{}");
  EXPECT_EQ(refusal(),
            "the header's length is 100000001; it must be at most 100000000 (is it a safetensors "
            "file?)");
  write_raw(UINT64_MAX, "{}");
  EXPECT_EQ(refusal(),
            "the header's length is 18446744073709551615; it must be at most 100000000 (is it a "
            "safetensors file?)");
  EXPECT_EQ(refusal("[]"), "the header is an array; it must be an object");
  EXPECT_TRUE(refusal("{\"a\":").starts_with("not JSON at byte 6:"));
  EXPECT_EQ(refusal("{}"), "no error");
  EXPECT_EQ(refusal("{}", 3), "bytes 0 to 3 of the data belong to no tensor");
}

TEST_F(Safetensors, RefusesMetadataThatIsNotStrings) {
  EXPECT_EQ(refusal(R"({"__metadata__": 3})"), "__metadata__ is an integer; it must be an object");
  EXPECT_EQ(refusal(R"({"__metadata__": {"step": 3}})"),
            "__metadata__ holds an integer under \"step\"; it must be a string");
}

struct Hostile {
  const char* header;
  size_t data;
  const char* message;
};

TEST_F(Safetensors, RefusesHostileTensors) {
  const Hostile files[] = {
      {R"({"a": 1})", 0, "tensor \"a\" is an integer; it must be an object"},
      {R"({"a": {"shape": [1], "data_offsets": [0, 4]}})", 4, "tensor \"a\" has no dtype"},
      {R"({"a": {"dtype": "F32", "data_offsets": [0, 4]}})", 4, "tensor \"a\" has no shape"},
      {R"({"a": {"dtype": "F32", "shape": [1]}})", 4, "tensor \"a\" has no data_offsets"},
      {R"({"a": {"dtype": 1, "shape": [1], "data_offsets": [0, 4]}})", 4,
       "tensor \"a\" has a dtype that is no string"},
      {R"({"a": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}})", 4,
       "tensor \"a\" has dtype \"F8_E4M3\", which is not supported"},
      {R"({"a": {"dtype": "F32", "shape": 1, "data_offsets": [0, 4]}})", 4,
       "tensor \"a\" has a shape that is no array"},
      {R"({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}})", 4,
       "tensor \"a\" has -1 in shape; only integers from 0 to 2^63 - 1 may stand there"},
      {R"({"a": {"dtype": "F32", "shape": [1.5], "data_offsets": [0, 4]}})", 4,
       "tensor \"a\" has 1.5 in shape; only integers from 0 to 2^63 - 1 may stand there"},
      {R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}})", 4,
       "tensor \"a\" has -4 in data_offsets; only integers from 0 to 2^63 - 1 may stand there"},
      {R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 18446744073709551616]}})", 4,
       "tensor \"a\" has 1.8446744073709552e+19 in data_offsets; only integers from 0 to 2^63 - 1 "
       "may stand there"},
      {R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}})", 4,
       "tensor \"a\" has data_offsets [4, 0]; they must be [begin, end]"},
      {R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4]}})", 4,
       "tensor \"a\" has data_offsets [4]; they must be [begin, end]"},
      {R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})", 3,
       "tensor \"a\" ends at byte 4 of the data, which has 3"},
      {R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [9223372036854775803,
       9223372036854775807]}})",
       4, "tensor \"a\" ends at byte 9223372036854775807 of the data, which has 4"},
      {R"({"a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 20]}})", 20,
       "tensor \"a\" has 20 bytes; F32 [2, 3] needs 24"},
      {R"({"a": {"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 0]}})", 0,
       "tensor \"a\" has shape [4294967296, 4294967296], which is more than memory can hold"},
      {R"({"a": {"dtype": "U8", "shape": [1,1,1,1,1,1,1,1,1], "data_offsets": [0, 1]}})", 1,
       "tensor \"a\" has 9 dimensions; at most 8 are accepted"},
      {R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1], "more": 1}})", 1,
       "tensor \"a\" has a key \"more\"; only dtype, shape and data_offsets are known"},
      {R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
           "a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}})",
       2, "key \"a\" stands twice in one object"},
      {R"({"a": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]},
           "b": {"dtype": "U8", "shape": [2], "data_offsets": [2, 4]}})",
       4, "tensor \"b\" begins at byte 2 of the data, inside tensor \"a\", which ends at 3"},
      {R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [3, 5]},
           "b": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}})",
       5, "bytes 2 to 3 of the data belong to no tensor"},
      {R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]}})", 3,
       "bytes 0 to 1 of the data belong to no tensor"},
      {R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}})", 3,
       "bytes 2 to 3 of the data belong to no tensor"},
      {R"({"x\ny": 1})", 0, "tensor \"x\\ny\" is an integer; it must be an object"},
  };
  for (const Hostile& f : files) EXPECT_EQ(refusal(f.header, f.data), f.message);
}

}  // namespace
}  // namespace rondo
