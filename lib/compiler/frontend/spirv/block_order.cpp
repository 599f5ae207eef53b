// Reverse post-order of a depth-first search from the first block: a block that dominates another one comes before it. The search has a
// stack of its own, so that a module cannot overflow the thread's. Blocks that the first one does not reach keep their order, at the end.
#include "block_order.h"

#include <map>
#include <set>
#include <utility>

namespace polder::compiler::spirv {
namespace {

using BasicBlock = std::vector<const Instruction*>;

class BlockOrder {
public:
    // `literal_words`: of each literal of an OpSwitch, by the id of its selector.
    BlockOrder(std::vector<BasicBlock> blocks, const std::map<uint32_t, size_t>& literal_words)
        : blocks_(std::move(blocks)), literal_words_(literal_words) {
        for (size_t i = 0; i < blocks_.size(); ++i)
            places_[blocks_[i].front()->result] = i;
    }

    [[nodiscard]] std::vector<BasicBlock> run() {
        std::vector<BasicBlock> ordered;
        search();
        for (auto place = finished_.rbegin(); place != finished_.rend(); ++place)
            ordered.push_back(blocks_[*place]);
        for (size_t i = 0; i < blocks_.size(); ++i)
            if (!seen_.contains(i))
                ordered.push_back(blocks_[i]);
        return ordered;
    }

private:
    // Fills finished_ with the blocks that are reached, each after its successors.
    void search() {
        std::vector<std::pair<size_t, std::vector<size_t>>> open;  // blocks, and successors that were not looked at
        const auto enter = [&](size_t place) {
            if (seen_.insert(place).second)
                open.emplace_back(place, successors(blocks_[place]));
        };
        enter(0);
        while (!open.empty()) {
            std::vector<size_t>& left = open.back().second;
            if (left.empty()) {
                finished_.push_back(open.back().first);
                open.pop_back();
                continue;
            }
            const size_t next = left.back();
            left.pop_back();
            enter(next);
        }
    }

    [[nodiscard]] std::vector<size_t> successors(const BasicBlock& block) const {
        std::vector<size_t> found;
        const auto add = [&](uint32_t label) {
            if (const auto place = places_.find(label); place != places_.end())
                found.push_back(place->second);
        };
        const Instruction& last = *block.back();
        if (last.opcode == spv::OpBranch)
            add(last.operand(0));
        if (last.opcode == spv::OpBranchConditional)
            for (const size_t which : {size_t{2}, size_t{1}})
                add(last.operand(which));
        if (last.opcode == spv::OpSwitch) {
            const auto words = literal_words_.find(last.operand(0));
            const size_t step = 1 + (words == literal_words_.end() ? 1 : words->second);
            for (size_t at = 1; at < last.operands.size(); at += step)
                add(last.operand(at));
        }
        return found;
    }

    const std::vector<BasicBlock> blocks_;
    const std::map<uint32_t, size_t>& literal_words_;
    std::map<uint32_t, size_t> places_;  // of labels
    std::set<size_t> seen_;
    std::vector<size_t> finished_;
};

}  // namespace

std::vector<const Instruction*> with_ordered_blocks(const Binary& binary) {
    std::set<uint32_t> wide_types;
    std::map<uint32_t, size_t> literal_words;
    std::vector<const Instruction*> result;
    std::vector<BasicBlock> blocks;
    for (const Instruction& instruction : binary.instructions()) {
        if (instruction.opcode == spv::OpTypeInt && instruction.operand(0) > 32)
            wide_types.insert(instruction.result);
        if (wide_types.contains(instruction.type))
            literal_words[instruction.result] = 2;
        if (instruction.opcode == spv::OpLabel)
            blocks.emplace_back();
        if (instruction.opcode == spv::OpFunctionEnd && !blocks.empty()) {
            for (const BasicBlock& block : BlockOrder{std::exchange(blocks, {}), literal_words}.run())
                result.insert(result.end(), block.begin(), block.end());
        }
        (blocks.empty() ? result : blocks.back()).push_back(&instruction);
    }
    for (const BasicBlock& block : blocks)  // of a function without an end
        result.insert(result.end(), block.begin(), block.end());
    return result;
}

}  // namespace polder::compiler::spirv
