#include "runtime/shards/safetensors.hpp"

#include "base/format/little_endian.hpp"
#include "runtime/checkpoint/saved_state_test.hpp"

namespace orrery {
namespace {

using SafetensorsTest = CheckpointTest;

TEST_F(SafetensorsTest, ACheckpointGoesOutAndComesInTheSame) {
  const SavedState state(9);
  Rng random(3);
  const Manifest manifest =
      SavedState::write(directory_, {"llama", {1, 0}, 10}, state.cut(3, random));
  CheckpointReader reader = must_have(CheckpointReader::open(directory_, manifest));
  const std::string path = directory_ + "/model.safetensors";
  must_do(export_safetensors(reader, path));
  must_do(export_safetensors(reader, path));  // replaces the first file
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  EXPECT_EQ(load_little_endian<std::uint64_t>(bytes_of_file(path).data()) % 8, 0u);

  SafetensorsFile file = must_have(SafetensorsFile::open(path));
  EXPECT_EQ(file.tensors().size(), state.tensors().size());
  for (const SavedState::Tensor& tensor : state.tensors()) {
    const std::uint64_t all = SavedState::elements(tensor);
    const std::uint64_t begin = all / 3;
    std::string read((all - begin) * bytes_of(tensor.info.type), '\0');
    must_do(file.read({tensor.info.name, tensor.info.type, begin, all},
                      std::as_writable_bytes(std::span(read))));
    EXPECT_EQ(read, tensor.bytes.substr(begin * bytes_of(tensor.info.type))) << tensor.info.name;
  }
  std::byte none{};
  EXPECT_FALSE(file.read({"optimizer.stop", ElementType::kU8, 0, 1}, {&none, 1}));
}

TEST_F(SafetensorsTest, AHeaderOfAnotherWriterIsRead) {
  const auto entries = must_have(parse_safetensors_header(
      R"({"__metadata__":{"format":"pt"},"b":{"shape":[2,2],"dtype":"BF16","data_offsets":[4,12]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}     )",
      12, "x"));
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].info, (TensorInfo{"a", ElementType::kF32, {}}));
  EXPECT_EQ(entries[1].info, (TensorInfo{"b", ElementType::kBf16, {2, 2}}));
  EXPECT_EQ(entries[1].begin, 4u);
}

TEST_F(SafetensorsTest, WhatIsWrongInAHeaderIsSaidWithItsPlace) {
  const auto refusal = [](std::string_view header, std::uint64_t data_bytes) {
    const auto read = parse_safetensors_header(header, data_bytes, "x");
    return read ? "" : read.error().text();
  };
  EXPECT_EQ(
      refusal(R"({"a":{"dtype":"F23","shape":[1],"data_offsets":[0,4]}})", 4),
      "x:1:15: unknown value \"F23\", did you mean \"F32\"?; expected one of: F32, BF16, F16, "
      "I32, I64, U64, U8");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
            "x:1:6: tensor \"a\": expected data_offsets of 8 bytes, found [0, 4]");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8),
            "x:1:6: tensor \"a\": expected its data at byte 0, where those before end, found 4");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5),
            "x: expected 4 bytes of data for the tensors of the header, found 5");
  EXPECT_NE(refusal("[]", 0), "");
}

TEST_F(SafetensorsTest, AFileThatIsNoneIsRefused) {
  const std::string path = directory_ + "/x.safetensors";
  const auto refused = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    const Result<SafetensorsFile> opened = SafetensorsFile::open(path);
    return opened ? "" : opened.error().message;
  };
  EXPECT_EQ(refused("short"), "ends at byte 5, inside what it should hold");
  EXPECT_EQ(refused(std::string("\x10\0\0\0\0\0\0\0{}", 10)),
            "expected a header of at most 8388608 bytes within the file, found one of 16");
  EXPECT_EQ(refused(std::string("\x02\0\0\0\0\0\0\0{}", 10)), "");
}

}  // namespace
}  // namespace orrery
