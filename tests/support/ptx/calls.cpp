// Calls of device functions, by name and through addresses. Parameters and results are bytes of the frames' local memory.
#include "decoder.h"
#include "thread.h"

namespace polder::ptx {
namespace {

bool run_call(Thread& t, const Instruction& i) {
    const auto& site = *static_cast<const Call*>(i.more);
    return t.call(*site.callee, site);
}
bool run_indirect_call(Thread& t, const Instruction& i) {
    return t.call_indirect(*static_cast<const IndirectCall*>(i.more), t.get<uint64_t>(i.a));
}

std::vector<IndirectCall::Part> parts_of(Line& line, const Operand* list) {
    std::vector<IndirectCall::Part> parts;
    if (list == nullptr)
        return parts;
    for (const Operand& operand : list->parts) {
        if (operand.kind != Operand::Kind::variable) {
            line.refuse("an argument that is no parameter");
            return {};
        }
        const Variable& variable = line.function().text().variables[operand.index];
        parts.push_back({line.function().offset_of(operand.index), static_cast<uint32_t>(variable.bytes())});
    }
    return parts;
}

// The bytes of both sides must be as many.
bool match(const std::vector<IndirectCall::Part>& of_caller, const std::vector<IndirectCall::Part>& of_callee,
           std::vector<Passed>& passed) {
    if (of_caller.size() != of_callee.size())
        return false;
    for (size_t i = 0; i < of_caller.size(); ++i) {
        if (of_caller[i].bytes != of_callee[i].bytes)
            return false;
        passed.push_back({of_caller[i].offset, of_callee[i].offset, of_caller[i].bytes});
    }
    return true;
}

void decode_call(Line& line) {
    using Kind = Operand::Kind;
    line.take("uni");
    size_t at = 0;
    const auto take_list = [&]() -> const Operand* {
        const bool is_list = at < line.count() && line.operand(at).kind == Kind::list && line.operand(at).is_tuple;
        return is_list ? &line.operand(at++) : nullptr;
    };
    const Operand* const results = take_list();
    const Operand& callee = line.operand(at++);
    const Operand* const arguments = take_list();
    const auto of_arguments = parts_of(line, arguments), of_results = parts_of(line, results);
    if (callee.kind == Kind::reg) {
        IndirectCall& site = line.function().made().indirect_calls.emplace_back();
        site.arguments = of_arguments;
        site.results = of_results;
        return line.emit(
            {.run = run_indirect_call, .a = line.source(callee, Type::b64), .immediate = 1, .more = &site});
    }
    const Symbols& symbols = line.function().symbols();
    const auto found = symbols.functions.find(callee.name);
    if (callee.kind != Kind::name || found == symbols.functions.end())
        return line.refuse("unknown function " + std::string(callee.name));
    const Function& function = *symbols.by_number[found->second];
    if (!function.has_body)
        return line.refuse("unresolved extern function " + function.name);
    Call& site = line.function().made().calls.emplace_back();
    site.callee = &function;
    if (at != line.count() || !match(of_arguments, function.parameters, site.arguments) ||
        !match(of_results, function.results, site.results))
        return line.refuse("another prototype than that of " + function.name);
    line.emit({.run = run_call, .more = &site});
}

}  // namespace

void add_calls(Table& table) { table["call"] = decode_call; }

}  // namespace polder::ptx
