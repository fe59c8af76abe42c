// SPDX-License-Identifier: Apache-2.0
// SIGINT, SIGTERM and SIGHUP: cancellable work is asked to stop, everything else ends at once with the
// status 128 + the signal's number.
#pragma once

#include <string_view>

namespace tcast {

void install_interrupt_handlers();

// While an object of this class exists, a signal only sets interrupted().
class CancellableWork {
 public:
  CancellableWork();
  ~CancellableWork();
  CancellableWork(const CancellableWork&) = delete;
  CancellableWork& operator=(const CancellableWork&) = delete;
};

[[nodiscard]] bool interrupted();

// Prints how far the work came. Returns the exit status.
int report_interruption(std::string_view outcome = "nothing was written");

}  // namespace tcast
