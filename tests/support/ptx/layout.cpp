// Blocks begin at labels and behind branches. Where the block that follows in the text does not follow in the order, a jump is added.
#include "layout.h"

#include "control.h"

#include <algorithm>
#include <limits>
#include <set>

namespace polder::ptx {
namespace {

using Flow = Decoded::Flow;

struct BasicBlock {
    uint32_t begin = 0;
    uint32_t end = 0;
    std::vector<uint32_t> successors;
    bool falls_through = false;
};

class Order {
public:
    explicit Order(const std::vector<BasicBlock>& blocks) : blocks_(blocks), numbers_(blocks.size(), 0) {}

    std::vector<uint32_t> run() {
        std::vector<uint32_t> reversed;
        visit(0, reversed);
        std::ranges::reverse(reversed);
        // What cannot be reached.
        std::vector<bool> is_there(blocks_.size());
        for (const uint32_t block : reversed)
            is_there[block] = true;
        for (uint32_t block = 0; block < blocks_.size(); ++block)
            if (!is_there[block])
                reversed.push_back(block);
        return reversed;
    }

private:
    static constexpr uint32_t done = std::numeric_limits<uint32_t>::max();

    // The paper's function of this name, with lists that are built from their ends.
    uint32_t visit(uint32_t vertex, std::vector<uint32_t>& partition) {
        stack_.push_back(vertex);
        numbers_[vertex] = ++count_;
        uint32_t head = numbers_[vertex];
        bool is_loop = false;
        for (const uint32_t successor : blocks_[vertex].successors) {
            const uint32_t lowest = numbers_[successor] == 0 ? visit(successor, partition) : numbers_[successor];
            if (lowest <= head) {
                head = lowest;
                is_loop = true;
            }
        }
        if (head != numbers_[vertex])
            return head;
        numbers_[vertex] = done;
        uint32_t element = stack_.back();
        stack_.pop_back();
        if (is_loop) {
            while (element != vertex) {
                numbers_[element] = 0;
                element = stack_.back();
                stack_.pop_back();
            }
            std::vector<uint32_t> component;
            for (const uint32_t successor : blocks_[vertex].successors)
                if (numbers_[successor] == 0)
                    visit(successor, component);
            partition.insert(partition.end(), component.begin(), component.end());
        }
        partition.push_back(vertex);
        return head;
    }

    const std::vector<BasicBlock>& blocks_;
    std::vector<uint32_t> numbers_;
    std::vector<uint32_t> stack_;
    uint32_t count_ = 0;
};

class Layout {
public:
    Layout(std::vector<Decoded> decoded, const std::map<uint32_t, uint32_t>& positions, Function& made)
        : decoded_(std::move(decoded)), positions_(positions), made_(made) {}

    void run() {
        divide();
        const std::vector<uint32_t> order = Order(blocks_).run();
        begins_.resize(blocks_.size());
        for (size_t i = 0; i < order.size(); ++i) {
            const BasicBlock& block = blocks_[order[i]];
            begins_[order[i]] = static_cast<uint32_t>(made_.code.size());
            for (uint32_t at = block.begin; at < block.end; ++at) {
                sources_.push_back(at);
                made_.code.push_back(decoded_[at].instruction);
            }
            const uint32_t next = order[i] + 1;
            if (block.falls_through && (i + 1 == order.size() || order[i + 1] != next)) {
                sources_.push_back(added_jump | next);
                made_.code.push_back({.run = run_jump, .line = made_.code.back().line});
            }
        }
        for (uint32_t at = 0; at < made_.code.size(); ++at)
            connect(at);
    }

private:
    static constexpr uint32_t added_jump = 1u << 31;

    void divide() {
        std::set<uint32_t> begins{0};
        for (const auto& [label, at] : positions_)
            begins.insert(at);
        for (uint32_t at = 0; at + 1 < decoded_.size(); ++at)
            if (decoded_[at].flow != Flow::next)
                begins.insert(at + 1);
        for (auto begin = begins.begin(); begin != begins.end(); ++begin) {
            const auto end = std::next(begin);
            numbers_[*begin] = static_cast<uint32_t>(blocks_.size());
            blocks_.push_back({*begin, end == begins.end() ? static_cast<uint32_t>(decoded_.size()) : *end, {}, false});
        }
        for (uint32_t number = 0; number < blocks_.size(); ++number) {
            BasicBlock& block = blocks_[number];
            const Decoded& last = decoded_[block.end - 1];
            block.falls_through = last.flow == Flow::next || last.flow == Flow::branch;
            for (const uint32_t label : last.targets)
                block.successors.push_back(numbers_.at(positions_.at(label)));
            if (block.falls_through)
                block.successors.push_back(number + 1);
        }
    }

    [[nodiscard]] int64_t distance(uint32_t from, uint32_t block) const {
        return int64_t{begins_[block]} - int64_t{from};
    }
    [[nodiscard]] uint32_t block_of(uint32_t label) const { return numbers_.at(positions_.at(label)); }

    // Branches hold the distance to their targets.
    void connect(uint32_t at) {
        Instruction& instruction = made_.code[at];
        if ((sources_[at] & added_jump) != 0) {
            instruction.immediate = distance(at, sources_[at] & ~added_jump);
            return;
        }
        const Decoded& decoded = decoded_[sources_[at]];
        if (decoded.flow == Flow::jump || decoded.flow == Flow::branch) {
            instruction.immediate = distance(at, block_of(decoded.targets[0]));
        } else if (decoded.flow == Flow::table) {
            Slots& list = made_.lists.emplace_back();
            for (const uint32_t label : decoded.targets)
                list.slots.push_back(static_cast<uint32_t>(distance(at, block_of(label))));
            instruction.more = &list;
        }
    }

    const std::vector<Decoded> decoded_;
    const std::map<uint32_t, uint32_t>& positions_;
    Function& made_;
    std::vector<BasicBlock> blocks_;
    std::map<uint32_t, uint32_t> numbers_;  // of the blocks, by where they begin
    std::vector<uint32_t> begins_;  // of the blocks in the code
    std::vector<uint32_t> sources_;  // of each instruction: its index in decoded_, or what an added jump leads to
};

}  // namespace

void lay_out(std::vector<Decoded> decoded, const std::map<uint32_t, uint32_t>& positions, Function& made) {
    Layout(std::move(decoded), positions, made).run();
}

}  // namespace polder::ptx
