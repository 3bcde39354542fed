#include "runtime/checkpoint/shard_file.hpp"

#include <sys/resource.h>

#include <csignal>
#include <cstring>

#include "runtime/checkpoint/checkpoint_writer.hpp"
#include "runtime/checkpoint/saved_state_test.hpp"

namespace orrery {
namespace {

const ShardName kName{{"llama", {2, 1}, 40}, 1, 4};

// While it lives, no file of this process grows beyond `bytes`: a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : signal_before_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_before_);
  }

 private:
  rlimit before_{};
  void (*signal_before_)(int);
};

/// More than a block, so that reading crosses one.
std::string large_bytes() {
  std::string bytes((std::size_t{5} << 18) + 12, '\0');
  for (std::size_t i = 0; i < bytes.size(); i += 8) bytes[i] = static_cast<char>(i >> 8);
  return bytes;
}

PieceView view_of(const std::string& name, const std::string& bytes) {
  return {{name, ElementType::kU8, {bytes.size()}, 0, bytes.size(), 0},
          std::as_bytes(std::span(bytes))};
}

/// As a file has it.
std::string sealed_bytes(const SnapshotBuffer& snapshot) {
  HeaderSeal header = must_have(seal(snapshot));
  return std::string(header.finish()) + std::string(snapshot.payload());
}

class ShardTest : public CheckpointTest {
 protected:
  [[nodiscard]] std::string path() const { return directory_ + "/" + kName.file(); }
};

TEST_F(ShardTest, BothWaysOfWritingGiveTheSameFileWhichIsAlsoAPeersCopy) {
  const std::string bytes = large_bytes();
  const SavedState state(1);
  std::vector<PieceView> pieces = state.whole();
  pieces.push_back(view_of("large", bytes));
  SnapshotBuffer snapshot;
  must_do(snapshot.take(kName, pieces));
  const WrittenShard direct = must_have(write_shard(directory_, snapshot));
  const std::string first = bytes_of_file(path());
  const WrittenShard plain = must_have(write_shard(directory_, snapshot, WriteMethod::kBuffered));
  EXPECT_EQ(plain.method, WriteMethod::kBuffered);
  EXPECT_EQ(plain.record, direct.record);
  EXPECT_EQ(bytes_of_file(path()), first);
  EXPECT_EQ(sealed_bytes(snapshot), first);

  const ParsedShard copy = must_have(parse_shard(first, "peer"));
  EXPECT_EQ(copy.index.header, snapshot.header());
  ASSERT_EQ(copy.pieces.size(), pieces.size());
  ShardReader reader = must_have(ShardReader::open(path()));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(copy.pieces[i].bytes, pieces[i].bytes));
    std::vector<std::byte> read(pieces[i].bytes.size());
    must_do(reader.read(reader.index().header.pieces[i].offset, read));
    EXPECT_TRUE(std::ranges::equal(read, pieces[i].bytes)) << pieces[i].piece.tensor;
  }
}

TEST_F(ShardTest, ASnapshotIsOfTheMomentItWasTakenAndItsMemoryIsUsedAgain) {
  SavedState state(1);
  CheckpointWriter writer(directory_);
  must_do(writer.reserve(1 << 16));
  EXPECT_FALSE(writer.poll());
  must_do(writer.begin(kName, state.whole()));
  EXPECT_FALSE(writer.idle());
  const std::string before = state.tensors()[0].bytes;
  std::ranges::fill(state.tensors()[0].bytes, 'x');
  const WrittenShard written = must_have(writer.wait());
  const std::string file = step_directory(directory_, 40) + "/" + written.record.file;
  const std::string saved = bytes_of_file(file);
  EXPECT_NE(saved.find(before), std::string::npos);

  // A rank that has nothing to save.
  ShardName later = kName;
  later.id.step = 50;
  must_do(writer.begin(later, {}));
  std::optional<Result<WrittenShard>> done;
  while (!done) done = writer.poll();
  EXPECT_EQ(must_have(*std::move(done)).record.bytes, 4096u);
}

TEST_F(ShardTest, EveryFileThatEndsTooEarlyIsFound) {
  SnapshotBuffer snapshot;
  const std::string bytes(70'000, 'w');
  must_do(snapshot.take(kName, std::vector{view_of("w", bytes)}));
  const std::uint64_t whole = must_have(write_shard(directory_, snapshot)).record.bytes;
  for (std::uint64_t end = whole - 1; end > 4096; end = (end - 1) / 4096 * 4096) {
    std::filesystem::resize_file(path(), end);
    const Result<ShardReader> opened = ShardReader::open(path());
    ASSERT_FALSE(opened) << end;
    EXPECT_TRUE(opened.error().text().starts_with(path())) << opened.error().text();
  }
  // The torn write of a crash: as long as it should be, but the end never came.
  std::filesystem::resize_file(path(), 4096 + 8192);
  std::filesystem::resize_file(path(), whole);
  ShardReader torn = must_have(ShardReader::open(path()));
  const Status found = torn.verify();
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().text().find("tensor \"w\""), std::string::npos) << found.error().text();
}

TEST_F(ShardTest, EveryFlippedBitIsFoundAndTheHurtTensorNamed) {
  const SavedState state(3);
  SnapshotBuffer snapshot;
  must_do(snapshot.take(kName, state.whole()));
  const std::string good = sealed_bytes(snapshot);
  const ShardIndex index = must_have(parse_shard(good, "f")).index;
  Rng random(7);
  for (int i = 0; i < 400; ++i) {
    std::string hurt = good;
    const std::uint64_t at = random.below(hurt.size());
    hurt[at] = static_cast<char>(hurt[at] ^ (1 << random.below(8)));
    const Result<ParsedShard> read = parse_shard(hurt, "f");
    ASSERT_FALSE(read) << at;
    EXPECT_TRUE(read.error().text().starts_with("f: ")) << read.error().text();
    if (at < index.header_bytes) continue;
    EXPECT_NE(read.error().message.find("tensor \"block.0"), std::string::npos);
  }
}

TEST_F(ShardTest, ADamagedBlockIsNamedByPlaceAndElement) {
  const std::string bytes = large_bytes();
  SnapshotBuffer snapshot;
  must_do(snapshot.take(kName, std::vector{view_of("large", bytes)}));
  static_cast<void>(must_have(write_shard(directory_, snapshot)));
  ShardReader reader = must_have(ShardReader::open(path()));
  {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(reader.index().header_bytes + kShardBlockBytes + 5));
    file.put('!');
  }
  std::vector<std::byte> part(100);
  must_do(reader.read(0, part));  // of a block that is well
  const Status hurt = reader.read(kShardBlockBytes + 200'000, part);
  ASSERT_FALSE(hurt);
  EXPECT_EQ(hurt.error().text(),
            path() +
                ": bytes 1052672 to 1318912 are not what was written; there lies tensor "
                "\"large\" from element 1048576");
}

TEST_F(ShardTest, AFullDiskIsAnErrorThatLeavesNothingAndTheNextIntervalTriesAgain) {
  const std::string bytes = large_bytes();
  const std::vector<PieceView> pieces{view_of("large", bytes)};
  for (const WriteMethod method : {WriteMethod::kDirect, WriteMethod::kBuffered}) {
    CheckpointWriter writer(directory_, method);
    const std::string file = step_directory(directory_, kName.id.step) + "/" + kName.file();
    {
      const FullDisk full(1 << 16);
      must_do(writer.begin(kName, pieces));
      const Result<WrittenShard> refused = writer.wait();
      ASSERT_FALSE(refused);
      EXPECT_TRUE(refused.error().text().starts_with(file)) << refused.error().text();
      EXPECT_FALSE(std::filesystem::exists(file));
    }
    must_do(writer.begin(kName, pieces));
    static_cast<void>(must_have(writer.wait()));
    EXPECT_TRUE(must_have(ShardReader::open(file)).verify());
  }
}

TEST_F(ShardTest, PiecesThatAreNoneAreRefusedByName) {
  const std::string bytes(8, 'x');
  SnapshotBuffer snapshot;
  const auto refusal = [&](PieceView view) {
    const Status taken = snapshot.take(kName, {&view, 1});
    return taken ? "" : taken.error().message;
  };
  PieceView view = view_of("w", bytes);
  EXPECT_EQ(refusal(view), "");
  view.piece.end = 9;
  EXPECT_EQ(refusal(view), "tensor \"w\": expected a range of its 8 elements, found [0, 9)");
  view.piece.end = 7;
  EXPECT_EQ(refusal(view), "tensor \"w\": expected 7 bytes for elements [0, 7), found 8");
  view.piece.shape = {std::uint64_t{1} << 40, std::uint64_t{1} << 40};
  EXPECT_EQ(refusal(view), "tensor \"w\": expected at most 2^53 elements, found more");
  view.piece.tensor.clear();
  EXPECT_EQ(refusal(view), "expected the name of a tensor as text, found none");
}

}  // namespace
}  // namespace orrery
