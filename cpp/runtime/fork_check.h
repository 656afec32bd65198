// Detects that a process was forked from the process that opened a device.
#pragma once

namespace rune::runtime {

// A forked child has none of its parent's threads and connections to devices, and may have
// inherited mutexes that nobody unlocks. So it must not wait for anything that belongs to an object
// made before the fork.
class ForkCheck {
 public:
  ForkCheck();
  // Whether this process was forked after the object was made.
  bool is_child() const;

 private:
  const int generation_;
};

}  // namespace rune::runtime
