#include "backends/cuda/services.h"

namespace rune::cuda {

Services& services() {
  static auto* const instance = new Services;  // devices may outlive everything else
  return *instance;
}

}  // namespace rune::cuda
