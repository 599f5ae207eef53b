// POCL_DISCRETE<i>_PARAMETERS: "memory=256M,bandwidth=16G,latency=5us,peer=1,unified=coherent,type=gpu,host=1" (or unified=mapped, type=accelerator).
//
// Parts may be left out and may be in any order. One warning reports all malformed parts, for which the
// defaults are used. Any thread.
#pragma once

#include <cstdint>
#include <host/interconnect.h>
#include <polder/driver.h>
#include <string_view>

namespace polder::discrete {

struct Parameters {
    uint64_t memory_bytes = uint64_t{1} << 30;
    // The speed of the link in each direction, also to peers. By default, copies are not slowed down.
    devices::LinkSpeed link;
    enum class Peer : uint8_t { none, direct } peer = Peer::direct;
    // Coherent: the device computes in host memory, so that a buffer has one block and no byte moves.
    // Mapped: the device uses host memory in place, too, but each range belongs either to the host or to the device.
    enum class Unified : uint8_t { no, coherent, mapped } unified = Unified::no;
    // Kernels use pinned host memory in place, as those of GPUs do: the device has SVM, and all kinds of unified shared memory.
    enum class HostMemory : uint8_t { copied, in_place } host_memory = HostMemory::copied;
    // What CL_DEVICE_TYPE is. Many programs accept GPUs only.
    driver::DeviceType type = driver::DeviceType::accelerator;
};

// `index` is the device's number, for the warning.
[[nodiscard]] Parameters parse_parameters(std::string_view text, uint32_t index);

}  // namespace polder::discrete
