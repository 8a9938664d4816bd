// What becomes of SIGBUS that has nothing to do with mapped files: whoever handled it before still does. Each
// test runs in a process of its own, in which no file was opened yet: the handler is installed with the first
// one.
#ifndef _WIN32

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csetjmp>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "core/file.h"

namespace gguf::test {
namespace {

const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

/** A file of two pages that has no name any more. */
int temporary_file() {
  char path[] = "/tmp/gguf-native-bus-XXXXXX";
  const int fd = mkstemp(path);
  if (fd < 0) _exit(99);
  unlink(path);
  if (ftruncate(fd, static_cast<off_t>(2 * kPage)) != 0) _exit(99);
  return fd;
}

/** A mapping that is not ours, and has lost its pages. */
volatile char* lost_mapping() {
  const int fd = temporary_file();
  void* start = mmap(nullptr, 2 * kPage, PROT_READ, MAP_SHARED, fd, 0);
  if (start == MAP_FAILED || ftruncate(fd, 0) != 0) _exit(99);
  return static_cast<volatile char*>(start);
}

/** A file of ours, open and with a descriptor that it can be cut off by. */
struct OurFile {
  std::shared_ptr<File> file;
  int fd;
};

OurFile open_ours() {
  char path[] = "/tmp/gguf-native-bus-XXXXXX";
  const int fd = mkstemp(path);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(2 * kPage)) != 0) _exit(99);
  const auto file = File::open(path, Access::kMap);
  unlink(path);
  if (!file.ok()) _exit(98);
  return {file.value(), fd};
}

/** Cuts it off and reads: only our handler makes that possible. */
void lose_a_page(const OurFile& ours) {
  if (ftruncate(ours.fd, 0) != 0) _exit(98);
  volatile const uint8_t* data = ours.file->data();
  if (data[kPage] != 0 || !ours.file->check(0, 1)) _exit(97);
  close(ours.fd);
}

void lose_a_page_of_ours() {
  lose_a_page(open_ours());
}

/** How a child that runs `body` ends: "exit 0", "signal 7". */
template <class Body>
void expect_end(const std::string& end, Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    body();
    _exit(0);
  }
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(end, WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                     : "exit " + std::to_string(WEXITSTATUS(status)));
}

const std::string kKilled = "signal " + std::to_string(SIGBUS);

void install(void (*handler)(int), int flags = 0) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(SIGBUS, &action, nullptr);
}

/** The same of a handler that wants to know more. */
void install(void (*handler)(int, siginfo_t*, void*), struct sigaction* before = nullptr) {
  struct sigaction action = {};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = handler;
  sigaction(SIGBUS, &action, before);
}

/** Calls the handler that is installed as the system would for a fault at `address`, and then removes it. */
void call_handler(int code, const void* address) {
  struct sigaction ours;
  sigaction(SIGBUS, nullptr, &ours);
  siginfo_t info = {};
  info.si_signo = SIGBUS;
  info.si_code = code;
  info.si_addr = const_cast<void*>(address);
  ours.sa_sigaction(SIGBUS, &info, nullptr);
  install(SIG_DFL);
}

TEST(BusError, OursIsSurvivedWhateverCodeTheSystemGivesIt) {
  // BUS_ADRALN is what Apple silicon says of every fault; the last stands for codes to come.
  for (const int code : std::initializer_list<int>{BUS_ADRERR, BUS_OBJERR, BUS_ADRALN, 99}) {
    expect_end("exit 0", [&] {
      install(SIG_DFL);
      const OurFile ours = open_ours();
      if (ftruncate(ours.fd, 0) != 0) _exit(98);
      volatile const uint8_t* data = ours.file->data();
      call_handler(code, ours.file->data() + kPage);
      _exit(data[kPage] == 0 && ours.file->check(0, 1) ? 0 : 97);
    });
  }
}

TEST(BusError, NothingIsReplacedForASignalThatWasSent) {
  for (const int code : std::initializer_list<int>{SI_USER, SI_QUEUE}) {
    expect_end("exit 0", [&] {
      install(SIG_IGN);
      const OurFile ours = open_ours();
      if (pwrite(ours.fd, "x", 1, 0) != 1) _exit(98);
      call_handler(code, ours.file->data());
      _exit(ours.file->data()[0] == 'x' && !ours.file->check(0, 1) ? 0 : 97);
    });
  }
}

TEST(BusError, OursIsSurvived) {
  expect_end("exit 0", [] {
    install(SIG_DFL);
    lose_a_page_of_ours();
    lose_a_page_of_ours();
  });
}

TEST(BusError, DefaultForAFault) {
  expect_end(kKilled, [] {
    install(SIG_DFL);
    lose_a_page_of_ours();
    _exit(lost_mapping()[0]);
  });
}

TEST(BusError, DefaultForASignalThatWasSent) {
  expect_end(kKilled, [] {
    install(SIG_DFL);
    lose_a_page_of_ours();
    kill(getpid(), SIGBUS);
    sleep(10);
  });
}

TEST(BusError, IgnoredWhenSent) {
  expect_end("exit 0", [] {
    install(SIG_IGN);
    lose_a_page_of_ours();
    kill(getpid(), SIGBUS);
    lose_a_page_of_ours();
  });
}

TEST(BusError, AFaultCannotBeIgnored) {
  expect_end(kKilled, [] {
    install(SIG_IGN);
    lose_a_page_of_ours();
    _exit(lost_mapping()[0]);
  });
}

sigjmp_buf back;

/** With a handler that jumps: a page of ours, a fault that is not ours, and a page of ours again. Exit 42. */
[[noreturn]] void jump_back_from_a_fault() {
  install([](int signal) { siglongjmp(back, signal); });
  lose_a_page_of_ours();
  const int signal = sigsetjmp(back, 1);
  if (signal == 0) _exit(lost_mapping()[0]);
  lose_a_page_of_ours();
  _exit(signal == SIGBUS ? 42 : 1);
}

TEST(BusError, PlainHandlerGetsFaults) {
  expect_end("exit 42", [] { jump_back_from_a_fault(); });
}

void* fault_address;

TEST(BusError, HandlerWithInformationGetsIt) {
  expect_end("exit 42", [] {
    install([](int, siginfo_t* info, void* context) {
      fault_address = info->si_addr;
      siglongjmp(back, context == nullptr ? 2 : 1);
    });
    lose_a_page_of_ours();
    volatile char* const lost = lost_mapping();
    const int reached = sigsetjmp(back, 1);
    if (reached == 0) _exit(lost[kPage + 5]);
    _exit(reached == 1 && fault_address == lost + kPage + 5 ? 42 : 1);
  });
}

volatile sig_atomic_t n_calls;

TEST(BusError, HandlerOfOneTimeIsCalledOnce) {
  expect_end(kKilled, [] {
    install([](int) { n_calls = n_calls + 1; }, static_cast<int>(SA_RESETHAND));
    lose_a_page_of_ours();
    raise(SIGBUS);
    if (n_calls != 1) _exit(1);
    lose_a_page_of_ours();
    raise(SIGBUS);
  });
}

TEST(BusError, HandlerRunsWithTheMaskThatItAskedFor) {
  expect_end("exit 42", [] {
    struct sigaction action = {};
    sigaddset(&action.sa_mask, SIGUSR1);
    action.sa_handler = [](int) {
      sigset_t blocked;
      sigprocmask(SIG_BLOCK, nullptr, &blocked);
      if (sigismember(&blocked, SIGUSR1) == 1 && sigismember(&blocked, SIGUSR2) == 0) n_calls = 1;
    };
    sigaction(SIGBUS, &action, nullptr);
    lose_a_page_of_ours();
    raise(SIGBUS);
    _exit(n_calls == 1 ? 42 : 1);
  });
}

TEST(BusError, AHandlerThatComesLaterAndPassesOnIsPassedThrough) {
  expect_end("exit 42", [] {
    install(SIG_DFL);
    const OurFile ours = open_ours();
    static struct sigaction before;
    install(
        [](int signal, siginfo_t* info, void* context) {
          n_calls = n_calls + 1;
          before.sa_sigaction(signal, info, context);
        },
        &before);
    lose_a_page(ours);
    _exit(n_calls == 1 ? 42 : 1);
  });
}

TEST(BusError, AHandlerThatComesLaterIsPassedOnToOnceAFileIsOpened) {
  expect_end("exit 42", [] {
    install(SIG_DFL);
    lose_a_page_of_ours();
    jump_back_from_a_fault();
  });
}

TEST(BusError, PassingOnDoesNotLeadInCircles) {
  expect_end(kKilled, [] {
    install(SIG_DFL);
    lose_a_page_of_ours();
    static struct sigaction before[3];
    const auto later = [](auto index) {
      return [](int signal, siginfo_t* info, void* context) {
        n_calls = n_calls + 1;
        if (n_calls > 3) _exit(1);
        before[decltype(index)::value].sa_sigaction(signal, info, context);
      };
    };
    install(later(std::integral_constant<size_t, 0>()), &before[0]);
    lose_a_page_of_ours();
    install(later(std::integral_constant<size_t, 1>()), &before[1]);
    lose_a_page_of_ours();
    install(later(std::integral_constant<size_t, 2>()), &before[2]);
    lose_a_page_of_ours();
    if (n_calls != 0) _exit(2);
    _exit(lost_mapping()[0]);
  });
}

TEST(BusError, ADefaultThatIsSetAgainAndAgainIsFollowedEachTime) {
  expect_end(kKilled, [] {
    for (int i = 0; i < 100; i++) {
      install(i % 2 == 0 ? SIG_DFL : SIG_IGN);
      lose_a_page_of_ours();
    }
    kill(getpid(), SIGBUS);  // ignored
    install(SIG_DFL);
    lose_a_page_of_ours();
    kill(getpid(), SIGBUS);
    sleep(10);
  });
}

TEST(BusError, WhereHandlersAreReplacedWithoutEndFilesAreReadInsteadOfMapped) {
  expect_end("exit 42", [] {
    for (int i = 0; i < 100; i++) {
      install([](int) { _exit(1); });
      const OurFile ours = open_ours();
      uint8_t byte = 1;
      if (ours.file->read(kPage, &byte, 1) || byte != 0) _exit(2);
      if (ours.file->data() == nullptr) _exit(i > 5 ? 42 : 3);
      close(ours.fd);
    }
  });
}

TEST(BusError, ErrnoStaysAsItWas) {
  expect_end("exit 42", [] {
    install(SIG_DFL);
    const OurFile ours = open_ours();
    if (ftruncate(ours.fd, 0) != 0) _exit(99);
    volatile int& error = errno;  // compilers believe that reading memory does not change it
    error = 77;
    volatile const uint8_t* data = ours.file->data();
    const int sum = data[0] + data[kPage];
    _exit(error == 77 && sum == 0 ? 42 : 1);
  });
}

}  // namespace
}  // namespace gguf::test

#endif  // !_WIN32
