// SPDX-License-Identifier: Apache-2.0
#include "process/interrupt.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include <fmt/format.h>

#include "command.hpp"

namespace tcast {
namespace {

std::atomic<bool> cancellable = false;
std::atomic<int> signalled = 0;  // the signal's number
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "a signal handler may only touch lock-free atomics");

extern "C" void on_signal(int number) {
  signalled = number;
  if (cancellable) return;
  constexpr char message[] = "\ntcast: interrupted\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, message, sizeof message - 1);
  _exit(exit_signal + number);
}

}  // namespace

void install_interrupt_handlers() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
  // A write beyond the limit of a file's size then fails with EFBIG, an ordinary error.
  action.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &action, nullptr);
}

CancellableWork::CancellableWork() { cancellable = true; }
CancellableWork::~CancellableWork() { cancellable = false; }

bool interrupted() { return signalled != 0; }

int report_interruption(std::string_view outcome) {
  fmt::print(stderr, "tcast: interrupted; {}\n", outcome);
  return exit_signal + signalled;
}

}  // namespace tcast
