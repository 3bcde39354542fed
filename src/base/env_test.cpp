// base/env_test.cpp - the loop of the real Env: timers, posts from other threads, clocks, stopping.
#include "base/env.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/system/real_env.hpp"

namespace orrery {
namespace {

class EnvTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<RealEnv>> made = RealEnv::create();
    ASSERT_TRUE(made) << made.error().text();
    real_ = *std::move(made);
  }

  [[nodiscard]] Env env() { return real_->env(); }
  [[nodiscard]] Callback note(char mark) {
    return [this, mark] { marks_ += mark; };
  }
  void run_until_marks(std::size_t count) {
    real_->run_until([&] { return marks_.size() >= count; });
  }

  std::unique_ptr<RealEnv> real_;
  std::string marks_;
};

TEST_F(EnvTest, TimersFireInOrderOfTimeThenOfTheirMaking) {
  const Instant past = env().clock.now_monotonic();
  const auto later = [&](int ms) { return past + Duration::milliseconds(ms); };
  env().timers.call_at(later(3), note('d'));
  env().timers.call_at(later(2), note('b'));
  env().timers.call_at(later(2), note('c'));
  env().timers.call_at(later(1), note('a'));
  env().timers.call_at(later(3), note('e'));
  run_until_marks(5);
  EXPECT_EQ(marks_, "abcde");
}

TEST_F(EnvTest, ATimerNeverFiresBeforeItsTime) {
  const Instant due = env().clock.now_monotonic() + Duration::milliseconds(2);
  Instant fired;
  env().timers.call_at(due, [&] { fired = env().clock.now_monotonic(); });
  real_->run_until([&] { return fired != Instant(); });
  EXPECT_GE(fired, due);
}

TEST_F(EnvTest, TimersOfThePastFireToo) {
  env().timers.call_at(Instant::from_ns(-5), note('a'));
  env().timers.call_at(Instant::from_ns(0), note('b'));
  env().timers.call_after(-Duration::nanoseconds(1), note('c'));
  run_until_marks(3);
  EXPECT_EQ(marks_, "abc");
}

TEST_F(EnvTest, ACancelledTimerNeverFiresAndCanBeCancelledOnce) {
  const Instant now = env().clock.now_monotonic();
  const TimerId waiting = env().timers.call_at(now, note('x'));
  env().timers.call_at(now, note('a'));
  EXPECT_TRUE(env().timers.cancel(waiting));
  EXPECT_FALSE(env().timers.cancel(waiting));
  env().timers.call_at(now, note('b'));
  run_until_marks(2);
  EXPECT_EQ(marks_, "ab");
}

TEST_F(EnvTest, ATimerThatIsDueCanStillBeCancelledByOneBeforeIt) {
  const Instant now = env().clock.now_monotonic();
  TimerId victim;
  bool cancelled = false;
  env().timers.call_at(now, [&] { cancelled = env().timers.cancel(victim); });
  victim = env().timers.call_at(now, note('x'));
  env().timers.call_at(now, note('a'));
  run_until_marks(1);
  EXPECT_TRUE(cancelled);
  EXPECT_EQ(marks_, "a");
}

TEST_F(EnvTest, ATimerThatHasFiredCannotBeCancelled) {
  const TimerId fired = env().timers.call_after(Duration(), note('a'));
  run_until_marks(1);
  EXPECT_FALSE(env().timers.cancel(fired));
}

TEST_F(EnvTest, TimersThatRenewThemselvesDoNotStarvePosts) {
  int renewals = 0;
  std::function<void()> renew = [&] {
    ++renewals;
    env().timers.call_at(Instant::from_ns(0), renew);
  };
  renew();
  env().post(note('p'));
  run_until_marks(1);
  EXPECT_EQ(marks_, "p");
  EXPECT_LE(renewals, 3);
}

TEST_F(EnvTest, ATimerMadeForTheVeryTimeThatJustFiredFiresToo) {
  const Instant now = env().clock.now_monotonic();
  env().timers.call_at(now, [this, now] {
    marks_ += 'a';
    env().timers.call_at(now, note('b'));
  });
  run_until_marks(2);
  EXPECT_EQ(marks_, "ab");
}

TEST_F(EnvTest, ANearerTimerFiresBeforeAFarOneMadeEarlier) {
  env().timers.call_after(Duration::hours(1000), note('x'));
  env().timers.call_at(Instant::max(), note('x'));
  env().timers.call_after(Duration::milliseconds(1), note('a'));
  run_until_marks(1);
  EXPECT_EQ(marks_, "a");
}

TEST_F(EnvTest, PostedCallbacksRunInOrderAndNeverInsidePost) {
  env().post([&] {
    env().post(note('c'));
    marks_ += 'a';
  });
  env().post(note('b'));
  EXPECT_EQ(marks_, "");
  run_until_marks(3);
  EXPECT_EQ(marks_, "abc");
}

TEST_F(EnvTest, PostsOfFourThreadsAllArriveEachThreadsInItsOrder) {
  constexpr int kThreads = 4;
  constexpr int kPosts = 1000;
  std::vector<std::vector<int>> arrived(kThreads);
  int total = 0;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  const Env shared = env();
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kPosts; ++i) {
        shared.post([&, thread, i] {
          arrived[static_cast<std::size_t>(thread)].push_back(i);
          ++total;
        });
      }
    });
  }
  real_->run_until([&] { return total == kThreads * kPosts; });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<int>& numbers : arrived) {
    ASSERT_EQ(numbers.size(), static_cast<std::size_t>(kPosts));
    for (int i = 0; i < kPosts; ++i) ASSERT_EQ(numbers[static_cast<std::size_t>(i)], i);
  }
}

TEST_F(EnvTest, StopEndsTheRunAndTheNextRunGoesOn) {
  env().post([&] {
    marks_ += 'a';
    env().post(note('b'));
    real_->stop();
  });
  real_->run();
  EXPECT_EQ(marks_, "a");
  run_until_marks(2);
  EXPECT_EQ(marks_, "ab");
}

TEST_F(EnvTest, StopBeforeRunningMakesTheNextRunReturnAtOnce) {
  env().post(note('a'));
  real_->stop();
  real_->run();
  EXPECT_EQ(marks_, "");
}

TEST_F(EnvTest, AnotherThreadStopsTheRunByPosting) {
  std::thread other([this, shared = env()] { shared.post([this] { real_->stop(); }); });
  real_->run();
  other.join();
  EXPECT_EQ(marks_, "");
}

volatile std::sig_atomic_t g_signals = 0;

TEST_F(EnvTest, ASignalInterruptsTheWaitWithoutHarm) {
  g_signals = 0;
  struct sigaction counting{};
  struct sigaction before{};
  counting.sa_handler = [](int) { g_signals = g_signals + 1; };
  ASSERT_EQ(::sigaction(SIGUSR1, &counting, &before), 0);
  const pthread_t loop_thread = ::pthread_self();
  std::thread other([&] { ::pthread_kill(loop_thread, SIGUSR1); });
  real_->run_until([] { return g_signals > 0; });
  other.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  env().timers.call_after(Duration(), note('a'));
  run_until_marks(1);
  EXPECT_EQ(marks_, "a");
}

TEST_F(EnvTest, TheMonotonicClockNeverGoesBackAndTheWallClockIsAfterThisWasWritten) {
  Instant last = env().clock.now_monotonic();
  for (int i = 0; i < 1000; ++i) {
    const Instant now = env().clock.now_monotonic();
    ASSERT_GE(now, last);
    last = now;
  }
  EXPECT_GT(env().clock.now_wall(), Instant() + Duration::hours(24) * 365 * 50);
}

TEST_F(EnvTest, EntropyDoesNotRepeatItself) {
  std::set<std::uint64_t> drawn;
  for (int i = 0; i < 1000; ++i) drawn.insert(env().entropy.draw());
  EXPECT_EQ(drawn.size(), 1000u);
}

TEST_F(EnvTest, RunningTheLoopInsideACallbackIsABug) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  env().post([this] { real_->run(); });
  EXPECT_DEATH(real_->run(), "a callback must not run the loop");
}

}  // namespace
}  // namespace orrery
