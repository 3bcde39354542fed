#include "runtime/shards/shard_file.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>

#include "runtime/checkpoint/checkpoint_writer.hpp"
#include "runtime/checkpoint/saved_state_test.hpp"

namespace orrery {
namespace {

const ShardName kName{{"llama", {2, 1}, 40}, 1, 4};

// Simulates a full disk: while it lives, no file of this process can grow beyond `bytes`.
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

/// Returns more than a block, so that reads cross a block boundary.
std::string large_bytes() {
  std::string bytes((std::size_t{5} << 18) + 12, '\0');
  for (std::size_t i = 0; i < bytes.size(); i += 8) bytes[i] = static_cast<char>(i >> 8);
  return bytes;
}

PieceView view_of(const std::string& name, const std::string& bytes) {
  return {{name, ElementType::kU8, {bytes.size()}, 0, bytes.size(), 0},
          std::as_bytes(std::span(bytes))};
}

/// Returns the bytes of a shard as in its file.
std::string sealed_bytes(const SnapshotBuffer& snapshot) {
  HeaderSeal header = must_have(seal(snapshot));
  return std::string(header.finish()) + std::string(snapshot.payload());
}

class ShardTest : public CheckpointTest {
 protected:
  [[nodiscard]] std::string path() const { return directory_ + "/" + kName.file(); }
};

TEST_F(ShardTest, BothWaysOfWritingGiveTheSameFile) {
  const std::string bytes = large_bytes();
  const SavedState state(1);
  std::vector<PieceView> pieces = state.whole();
  pieces.push_back(view_of("large", bytes));
  SnapshotBuffer snapshot;
  must_do(snapshot.take(kName, pieces));
  const WrittenShard direct = must_have(write_shard(directory_, snapshot));
  const std::string first = bytes_of_file(path());
  EXPECT_FALSE(write_shard(directory_, snapshot)) << "no shard is ever written over";
  EXPECT_EQ(bytes_of_file(path()), first);
  std::filesystem::remove(path());
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

/// Denies io_uring to this process from here on, as many sandboxes do.
void refuse_io_uring() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    throw std::runtime_error("this system has no filter of system calls");
  }
}

TEST_F(ShardTest, WhereIoUringIsRefusedTheShardIsWrittenPlainlyAndSaysSo) {
  SnapshotBuffer snapshot;
  const std::string bytes = large_bytes();
  must_do(snapshot.take(kName, std::vector{view_of("large", bytes)}));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    refuse_io_uring();
    const WrittenShard written = must_have(write_shard(directory_, snapshot));
    std::_Exit(written.method == WriteMethod::kBuffered ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(must_have(ShardReader::open(path())).verify());
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

  // A rank may have nothing to save.
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
  // A write torn by a crash: the file has its full length, but its end was never written.
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
  must_do(reader.read(0, part));  // from an undamaged block
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

TEST_F(ShardTest, WhatAKilledWriterLeftIsReplacedAndAShardOfACheckpointIsNot) {
  const SavedState state(1);
  const ShardName name{{"llama", {1, 0}, 20}, 0, 1};
  const std::string step = step_directory(directory_, 20);
  std::filesystem::create_directories(step);
  std::ofstream(step + "/" + name.file()) << "torn";
  CheckpointWriter writer(directory_);
  must_do(writer.begin(name, state.whole()));
  const ShardRecord record = must_have(writer.wait()).record;
  must_do(commit_checkpoint(directory_, {.id = name.id, .world = 1, .shards = {record}}));
  must_do(writer.begin(name, SavedState(2).whole()));
  const Result<WrittenShard> again = writer.wait();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message,
            directory_ + ": step 20 is committed already, by attempt 1 epoch 0");
  EXPECT_TRUE(must_have(open_newest_good(directory_)).reader);
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
  EXPECT_FALSE(snapshot.take({{"no text \xff", {1, 0}, 1}, 0, 1}, {}));
  EXPECT_FALSE(snapshot.take({{"llama", {1, 0}, 1}, 4, 4}, {}));
}

}  // namespace
}  // namespace orrery
