#include <base/options.h>
#include <base/parameter_list.h>

#include <charconv>
#include <cuda/parameters.h>

namespace polder::cuda {
namespace {

// A page of the GPU's memory and some to choose from.
constexpr uint64_t memory_bytes_min = uint64_t{8} << 20;
// Of CL_DEVICE_LOCAL_MEM_SIZE.
constexpr uint64_t local_memory_bytes_min = uint64_t{32} << 10;

bool parse_count(std::string_view text, uint32_t max, uint32_t& count) {
    uint32_t number = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || rest != text.data() + text.size() || number == 0 || number > max)
        return false;
    count = number;
    return true;
}

// Sets one part; false when it is malformed.
bool apply(Parameters& parameters, std::string_view key, std::string_view value) {
    if (key == "copy_threads")
        return parse_count(value, 64, parameters.copy_threads);
    if (key == "copy_chunks")
        return parse_count(value, 16, parameters.copy_chunks);
    if (key == "memory") {
        const auto bytes = options::parse_bytes(value);
        if (!bytes || *bytes < memory_bytes_min)
            return false;
        parameters.memory_bytes = bytes;
        return true;
    }
    if (key == "local_memory") {
        const auto bytes = options::parse_bytes(value);
        if (!bytes || *bytes < local_memory_bytes_min)
            return false;
        parameters.local_memory_bytes = bytes;
        return true;
    }
    if (key == "copy_chunk") {
        const auto bytes = options::parse_bytes(value);
        if (!bytes || *bytes < (uint64_t{64} << 10) || *bytes > (uint64_t{16} << 20) || *bytes % 4096 != 0)
            return false;
        parameters.copy_chunk_bytes = *bytes;
        return true;
    }
    return false;
}

}  // namespace

Parameters parse_parameters(std::string_view text, uint32_t index) {
    Parameters parameters;
    apply_parameters(
        "CUDA", index, text, "memory=8G,local_memory=48K,copy_threads=8,copy_chunk=2M,copy_chunks=2",
        [&parameters](std::string_view key, std::string_view value) { return apply(parameters, key, value); });
    return parameters;
}

}  // namespace polder::cuda
