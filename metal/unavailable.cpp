#include "base/error.h"
#include "metal/metal_device.h"

namespace rune::metal {

std::shared_ptr<runtime::Device> make_device() {
  user_error(
      ErrorKind::Runtime,
      "metal: cannot open a Metal device (this build has none: it was not made on macOS)\n"
      "hint: `jit(f, device=\"metal\").lower(...).source(\"metal\")` works on every machine");
}

bool is_available() {
  return false;
}

}  // namespace rune::metal
