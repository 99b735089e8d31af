// SPDX-License-Identifier: Apache-2.0
// Programs through the facade on a real GPU, with copies of their operands there. It launches nothing itself.
#pragma once
#include "tests/fuzz/differential.h"
#include <memory>

namespace elsewise::fuzz {

/// What a call of the facade gave.
struct Ran {
  api::Fault fault = api::Fault::None;
  std::string message;
};

class DeviceBackend {
public:
  /// Null: `why` there is no device.
  static std::unique_ptr<DeviceBackend> open(std::string &why);
  ~DeviceBackend();
  /// Runs the case; `out` is what its output's buffer, guard zones included, holds afterwards.
  Ran run(const Case &, std::vector<uint8_t> &out);

private:
  DeviceBackend();
  struct Device;
  std::unique_ptr<Device> device_;
};

} // namespace elsewise::fuzz
