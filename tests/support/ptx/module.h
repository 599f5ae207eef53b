// A module of PTX that can be executed: its functions in decoded form and the memory of its variables.
//
// Immutable after load, but for the bytes of its variables. Any thread; launches may execute at the same time.
#pragma once

#include "decoder.h"
#include "memory.h"

#include <array>
#include <memory>
#include <string>

namespace polder::ptx {

class Module {
public:
    // Null: the text is refused, and `log` names the line and the reason, such as an unsupported instruction. `processor` is 90
    // for sm_90; PTX for a newer one is refused.
    [[nodiscard]] static std::unique_ptr<Module> load(std::string_view text, unsigned processor, std::string& log);

    // Null when there is no such kernel.
    [[nodiscard]] const Function* kernel(std::string_view name) const;
    struct Global {
        uint64_t address;
        uint64_t bytes;
    };
    // None when there is no such variable in global or constant memory.
    [[nodiscard]] std::optional<Global> global(std::string_view name) const;
    [[nodiscard]] uint64_t static_shared_bytes() const { return shared_bytes_; }

    struct Grid {
        std::array<uint32_t, 3> blocks{1, 1, 1};
        std::array<uint32_t, 3> threads{1, 1, 1};
        uint64_t dynamic_shared_bytes = 0;
    };
    struct Outcome {
        Fault fault = Fault::none;
        std::string what;  // the reason: the instruction's line in the text, the thread, the block
        uint64_t instructions = 0;
    };
    // Executes a kernel on the calling thread. `memory`: what it may use as global memory beside the module's own variables.
    [[nodiscard]] Outcome run(const Function& kernel, const Grid& grid, std::span<const std::byte> parameters,
                              std::vector<Range> memory) const;

private:
    Module() = default;
    void place_variables();
    [[nodiscard]] bool initialize(std::string& log);
    [[nodiscard]] bool decode(std::string& log);

    std::string text_;  // names are views into it
    ModuleText tree_;
    Symbols symbols_;
    std::deque<Function> functions_;
    std::vector<std::unique_ptr<std::byte[]>> storage_;
    std::vector<Range> ranges_;
    std::map<std::string_view, Global> globals_;
    uint64_t shared_bytes_ = 0;  // without what a launch adds
};

}  // namespace polder::ptx
