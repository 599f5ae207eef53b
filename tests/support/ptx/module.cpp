// Loading: the text becomes a tree; variables get their places, so that their addresses are constants of the code; functions are declared, then
// decoded; then variables are initialized, which may hold addresses of functions.
#include "module.h"

#include "block.h"
#include "parser.h"

#include <algorithm>

namespace polder::ptx {
namespace {

// Variables lie apart, so that an access beyond the end of one is found.
constexpr uint64_t variable_alignment = 256;

uint64_t rounded_up(uint64_t value, uint64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

}  // namespace

std::unique_ptr<Module> Module::load(std::string_view text, unsigned processor, std::string& log) {
    std::unique_ptr<Module> made(new Module);
    made->text_ = text;
    auto tree = parse(made->text_, log);
    if (!tree)
        return nullptr;
    made->tree_ = std::move(*tree);
    if (made->tree_.processor > processor) {
        log =
            "ptxas error: PTX for sm_" + std::to_string(made->tree_.processor) + " on sm_" + std::to_string(processor);
        return nullptr;
    }
    made->symbols_.processor = made->tree_.processor;
    made->place_variables();
    if (!made->decode(log) || !made->initialize(log))
        return nullptr;
    return made;
}

void Module::place_variables() {
    for (const Variable& variable : tree_.variables)
        if (variable.space == Space::shared && !variable.is_extern) {
            shared_bytes_ = rounded_up(shared_bytes_, variable.alignment);
            symbols_.variables[variable.name] = {Space::shared, shared_bytes_};
            shared_bytes_ += variable.bytes();
        }
    for (const Variable& variable : tree_.variables)
        if (variable.space == Space::shared && variable.is_extern) {
            shared_bytes_ = rounded_up(shared_bytes_, std::max(variable.alignment, 16u));
            symbols_.variables[variable.name] = {Space::shared, shared_bytes_};
        }
    for (const Variable& variable : tree_.variables) {
        if (variable.space == Space::shared || variable.is_extern)
            continue;
        storage_.push_back(std::make_unique<std::byte[]>(variable.bytes() + 2 * variable_alignment));
        const auto begin = reinterpret_cast<uintptr_t>(storage_.back().get());
        const uint64_t address = rounded_up(begin, std::max<uint64_t>(variable.alignment, variable_alignment));
        symbols_.variables[variable.name] = {variable.space, address};
        globals_[variable.name] = {address, variable.bytes()};
        ranges_.push_back({address, address + variable.bytes(), variable.space != Space::constant});
    }
}

bool Module::decode(std::string& log) {
    // A declaration and the definition are one function.
    std::vector<const FunctionText*> texts;
    for (const FunctionText& text : tree_.functions) {
        const auto [known, is_new] = symbols_.functions.try_emplace(text.name, static_cast<uint32_t>(texts.size()));
        if (is_new)
            texts.push_back(&text);
        else if (text.has_body)
            texts[known->second] = &text;
    }
    std::deque<FunctionDecoder> decoders;
    for (const FunctionText* text : texts) {
        symbols_.by_number.push_back(&functions_.emplace_back());
        decoders.emplace_back(*text, symbols_, functions_.back()).declare();
    }
    return std::ranges::all_of(
        decoders, [&](FunctionDecoder& decoder) { return !decoder.made().has_body || decoder.decode(log); });
}

bool Module::initialize(std::string& log) {
    for (const Variable& variable : tree_.variables) {
        const auto place = globals_.find(variable.name);
        if (place == globals_.end())
            continue;
        if (variable.initial.size() > variable.elements) {
            log = "ptxas error: line " + std::to_string(variable.line) + ": too many initializers";
            return false;
        }
        auto* to = reinterpret_cast<std::byte*>(static_cast<uintptr_t>(place->second.address));
        for (const Initial& initial : variable.initial) {
            uint64_t value = initial.bits;
            if (!initial.symbol.empty()) {
                const auto of_variable = symbols_.variables.find(initial.symbol);
                const auto of_function = symbols_.functions.find(initial.symbol);
                if (of_variable != symbols_.variables.end()) {
                    value += of_variable->second.address;
                } else if (of_function != symbols_.functions.end()) {
                    value += function_window + of_function->second * function_stride;
                } else {
                    log = "ptxas error: line " + std::to_string(variable.line) + ": unknown name " +
                          std::string(initial.symbol);
                    return false;
                }
            }
            if (initial.mask != ~uint64_t{0} && initial.mask != 0)
                value = (value & initial.mask) >> std::countr_zero(initial.mask);
            std::memcpy(to, &value, bytes_of(variable.type));
            to += bytes_of(variable.type);
        }
    }
    return true;
}

const Function* Module::kernel(std::string_view name) const {
    const auto found = symbols_.functions.find(name);
    if (found == symbols_.functions.end() || !symbols_.by_number[found->second]->is_entry)
        return nullptr;
    return symbols_.by_number[found->second];
}

std::optional<Module::Global> Module::global(std::string_view name) const {
    const auto found = globals_.find(name);
    return found == globals_.end() ? std::nullopt : std::optional(found->second);
}

Module::Outcome Module::run(const Function& kernel, const Grid& grid, std::span<const std::byte> parameters,
                            std::vector<Range> memory) const {
    memory.insert(memory.end(), ranges_.begin(), ranges_.end());
    memory = merged(std::move(memory));
    const Launch launch{.kernel = &kernel,
                        .grid = grid.blocks,
                        .block = grid.threads,
                        .shared_bytes = shared_bytes_ + grid.dynamic_shared_bytes,
                        .dynamic_bytes = grid.dynamic_shared_bytes,
                        .parameters = parameters,
                        .memory = memory,
                        .functions = symbols_.by_number};
    Block block(launch);
    for (uint32_t z = 0; z < grid.blocks[2]; ++z)
        for (uint32_t y = 0; y < grid.blocks[1]; ++y)
            for (uint32_t x = 0; x < grid.blocks[0]; ++x)
                if (!block.run({x, y, z}))
                    return {block.state().fault, block.state().what, block.instructions()};
    return {Fault::none, {}, block.instructions()};
}

}  // namespace polder::ptx
