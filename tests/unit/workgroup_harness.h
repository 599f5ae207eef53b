// Compiles OpenCL C with the clang program, makes work-group functions with lib/compiler/targets/host/workgroup alone,
// and runs them; for tests of that folder.
#pragma once

#include "targets/host/workgroup/workgroup.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <polder/kernel_abi.h>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {

// The index of an element whose place was computed with ints.
inline size_t index_of(int place) { return static_cast<size_t>(place); }

struct Range {
    uint32_t dimensions = 1;
    std::array<uint64_t, 3> global{1, 1, 1};
    std::array<uint64_t, 3> local{1, 1, 1};
    std::array<uint64_t, 3> offset{0, 0, 0};
};

// Packed arguments of a launch.
class Arguments {
public:
    template <class T>
    Arguments& add(const T& value, size_t alignment = alignof(T)) {
        // Not insert: GCC 12 warns that it writes beyond the vector's end.
        const size_t place = (bytes_.size() + alignment - 1) / alignment * alignment;
        std::vector<std::byte> longer(place + sizeof(T));
        std::ranges::copy(bytes_, longer.begin());
        std::memcpy(longer.data() + place, &value, sizeof(T));
        bytes_ = std::move(longer);
        return *this;
    }
    // A __local pointer to `size` bytes.
    Arguments& add_local(uint64_t size) {
        locals_.push_back({(bytes_.size() + 7) / 8 * 8, size});
        return add(uint64_t{0});
    }

private:
    friend class Compiled;
    struct Local {
        size_t at;
        uint64_t size;
    };
    std::vector<std::byte> bytes_;
    std::vector<Local> locals_;
};

// For tests that look at code and do not run it: what becomes lanes, and how wide they are, depends on the processor.
inline constexpr const char* processor_with_512_bits = "znver4";
inline constexpr const char* processor_with_256_bits = "haswell";

// For tests that run code: this processor, and older ones with vectors of 512, 256 and 128 bits.
inline constexpr std::array processors{"", "skylake-avx512", "haswell", "x86-64-v2"};
[[nodiscard]] bool has_512_bits();
[[nodiscard]] inline bool runs_here(const std::string& processor) {
    return processor != "skylake-avx512" || has_512_bits();
}

// A compiled translation unit. Functions whose name begins with `called_` are not inlined.
class Compiled {
public:
    // Fails the test, and is empty, when the source does not compile. `processor`: LLVM's name of one; empty: the host's.
    explicit Compiled(const std::string& source, const std::string& processor = {});
    ~Compiled();

    // `Lanes::later`: with the passes and the code generator of quick code.
    // The work-group function of `kernel`, made at first use; one more per `specialised` size. Empty message: done.
    [[nodiscard]] std::string prepare(const std::string& kernel, bool specialised = false,
                                      std::array<uint64_t, 3> local_size = {},
                                      WorkGroupOptions::Ends ends = WorkGroupOptions::Ends::ragged,
                                      Lanes lanes = Lanes::where_they_pay);
    // For the functions that are prepared from now on: WorkGroupOptions::vectors.
    void run_at_once(unsigned vectors) { vectors_ = vectors; }
    // The same: they are optimised by all passes that kernels are.
    void run_all_passes() { runs_all_passes_ = true; }
    [[nodiscard]] const WorkGroupResult& result() const { return result_; }
    // Runs the function last prepared over a whole range.
    void run(const Range& range, const Arguments& arguments) const;
    // Its optimised IR.
    [[nodiscard]] const std::string& optimised() const { return optimised_; }

private:
    struct State;
    std::unique_ptr<State> state_;
    std::string bitcode_;
    std::string optimised_;
    unsigned vectors_ = 0;
    bool runs_all_passes_ = false;
    WorkGroupResult result_;
    WorkGroupFunction function_ = nullptr;
};

// How often `part` stands in `text`.
[[nodiscard]] size_t count(const std::string& text, const std::string& part);
// Of the optimised IR.
[[nodiscard]] inline size_t count(const Compiled& program, const std::string& part) {
    return count(program.optimised(), part);
}
[[nodiscard]] inline bool has(const Compiled& program, const std::string& part) {
    return program.optimised().find(part) != std::string::npos;
}

}  // namespace polder::compiler::workgroup::test
