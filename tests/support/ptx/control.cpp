#include "control.h"

#include "decoder.h"

#include <algorithm>
#include <utility>

namespace polder::ptx {

bool run_jump(Thread& t, const Instruction& i) {
    t.pc = &i + i.immediate;
    return true;
}
bool run_branch_if(Thread& t, const Instruction& i) {
    if (t.get<uint8_t>(i.a) != 0)
        t.pc = &i + i.immediate;
    return true;
}
bool run_branch_unless(Thread& t, const Instruction& i) {
    if (t.get<uint8_t>(i.a) == 0)
        t.pc = &i + i.immediate;
    return true;
}
bool run_return(Thread& t, const Instruction&) { return t.leave(); }

namespace {

bool run_exit(Thread& t, const Instruction&) {
    t.state = Thread::State::ended;
    return false;
}
bool run_trap(Thread& t, const Instruction&) { return t.fail(Fault::launch_failed, "trap"); }
// Others go on first.
bool run_sleep(Thread&, const Instruction&) { return false; }

bool run_table(Thread& t, const Instruction& i) {
    const auto& distances = static_cast<const Slots*>(i.more)->slots;
    const auto index = t.get<uint32_t>(i.a);
    if (index >= distances.size())
        return t.fail(Fault::invalid_pc, "a jump beyond its table");
    t.pc = &i + static_cast<int32_t>(distances[index]);
    return true;
}

void decode_bra(Line& line) {
    line.take("uni");
    if (line.count() != 1 || line.operand(0).kind != Operand::Kind::name)
        return line.refuse();
    const uint32_t label = line.function().label(line.operand(0).name);
    if (line.statement().guard.empty())
        return line.emit({.run = run_jump}, Decoded::Flow::jump, {label});
    Operand guard = line.statement().guard[0];
    const bool is_inverted = std::exchange(guard.is_inverted, false);
    line.emit({.run = is_inverted ? run_branch_unless : run_branch_if, .a = line.source(guard, Type::pred)},
              Decoded::Flow::branch, {label});
}

void decode_brx(Line& line) {
    line.take("uni");
    if (!line.take("idx") || line.count() != 2)
        return line.refuse();
    const auto& all = line.function().text().targets;
    const auto found = std::ranges::find(all, line.operand(1).name, &FunctionText::Targets::name);
    if (found == all.end())
        return line.refuse("unknown targets");
    std::vector<uint32_t> labels;
    for (const std::string_view name : found->labels)
        labels.push_back(line.function().label(name));
    line.emit({.run = run_table, .a = line.source(0, Type::b32)}, Decoded::Flow::table, std::move(labels));
}

void decode_end(Line& line, Handler handler) {
    line.take("uni");
    if (line.count() != 0)
        return line.refuse();
    line.emit({.run = handler}, Decoded::Flow::end);
}

}  // namespace

void add_control(Table& table) {
    table["bra"] = decode_bra;
    table["brx"] = decode_brx;
    table["ret"] = [](Line& line) { decode_end(line, run_return); };
    table["exit"] = [](Line& line) { decode_end(line, run_exit); };
    table["trap"] = [](Line& line) { decode_end(line, run_trap); };
    table["nanosleep"] = [](Line& line) {
        if (line.take_type() != Type::u32 || line.count() != 1)
            return line.refuse();
        line.emit({.run = run_sleep});
    };
}

}  // namespace polder::ptx
