// A statement is a line of operands and modifiers; a guarded one becomes a branch around it. Then the blocks are put in order (layout.h).
#include "decoder.h"

#include "control.h"
#include "layout.h"

#include <algorithm>
#include <bit>

namespace polder::ptx {
namespace {

const Table& table() {
    static const auto* const all = [] {
        auto* const made = new Table;
        add_integers(*made);
        add_bits(*made);
        add_floats(*made);
        add_approximations(*made);
        add_comparisons(*made);
        add_conversions(*made);
        add_moves(*made);
        add_accesses(*made);
        add_atomics(*made);
        add_control(*made);
        add_calls(*made);
        add_barriers(*made);
        add_warps(*made);
        return made;
    }();
    return *all;
}

}  // namespace

// --- Line ---

Line::Line(FunctionDecoder& function, const Statement& statement) : function_(function), statement_(statement) {
    std::string_view rest = statement.opcode;
    for (bool is_name = true; !rest.empty(); is_name = false) {
        const size_t dot = std::min(rest.find('.'), rest.size());
        if (!is_name)
            rest_.push_back(rest.substr(0, dot));
        rest.remove_prefix(std::min(dot + 1, rest.size()));
    }
}

bool Line::has(std::string_view modifier) const { return std::ranges::find(rest_, modifier) != rest_.end(); }

bool Line::take(std::string_view modifier) {
    const auto found = std::ranges::find(rest_, modifier);
    if (found == rest_.end())
        return false;
    rest_.erase(found);
    return true;
}

std::string_view Line::take_one(std::initializer_list<std::string_view> modifiers, std::string_view otherwise) {
    for (const std::string_view modifier : modifiers)
        if (take(modifier))
            return modifier;
    return otherwise;
}

Type Line::take_type() {
    for (auto modifier = rest_.begin(); modifier != rest_.end(); ++modifier)
        if (const auto type = type_named(*modifier)) {
            rest_.erase(modifier);
            return *type;
        }
    return Type::none;
}

std::optional<Space> Line::take_space() {
    for (auto modifier = rest_.begin(); modifier != rest_.end(); ++modifier)
        if (const auto space = space_named(*modifier)) {
            rest_.erase(modifier);
            return space;
        }
    return std::nullopt;
}

const Operand& Line::operand(size_t number) {
    static const Operand none;
    if (number < statement_.operands.size())
        return statement_.operands[number];
    refuse("too few operands");
    return none;
}

uint32_t Line::source(const Operand& operand, Type type) {
    using Kind = Operand::Kind;
    switch (operand.kind) {
    case Kind::reg: return target(operand, type);
    case Kind::integer: return constant(type == Type::pred ? (operand.bits != 0 ? 1 : 0) : operand.bits);
    case Kind::real32:
        if (type == Type::f64)
            return constant(std::bit_cast<uint64_t>(double{std::bit_cast<float>(static_cast<uint32_t>(operand.bits))}));
        return constant(operand.bits);
    case Kind::real64:
        if (type == Type::f32)
            return constant(std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(operand.bits))));
        return constant(operand.bits);
    default: refuse("an operand that is neither a register nor a number"); return 0;
    }
}

uint32_t Line::target(const Operand& operand, Type type) {
    if (operand.kind == Operand::Kind::sink)
        return function_.sink();
    if (operand.kind != Operand::Kind::reg || operand.is_inverted) {
        refuse("an operand that is no register");
        return 0;
    }
    const Type declared = function_.text().registers[operand.index].type;
    if (bytes_of(declared) < bytes_of(type) || (declared == Type::pred) != (type == Type::pred))
        refuse("a register of another type");
    return operand.index + 1;
}

Place Line::place(size_t number, Space space) {
    using Kind = Operand::Kind;
    const Operand& whole = operand(number);
    const bool is_address = whole.kind == Kind::address;
    const auto offset = static_cast<int64_t>(is_address ? whole.bits : 0);
    if (is_address && whole.parts.empty())
        return {space, constant(0), offset};
    const Operand& base = is_address ? whole.parts[0] : whole;
    const bool is_entry = function_.text().is_entry;
    if (base.kind == Kind::reg) {
        if (space == Space::parameter && !is_entry)
            space = Space::local;
        return {space, source(base, Type::b64), offset};
    }
    if (base.kind == Kind::variable) {
        const bool is_parameter = is_entry && base.index < function_.text().parameters;
        return {is_parameter ? Space::parameter : Space::local, is_parameter ? constant(0) : 0,
                offset + function_.offset_of(base.index)};
    }
    if (const auto known = function_.symbols().variables.find(base.name); known != function_.symbols().variables.end())
        return {known->second.space, constant(known->second.address), offset};
    if (const auto known = function_.symbols().functions.find(base.name); known != function_.symbols().functions.end())
        return {Space::generic, constant(function_window + known->second * function_stride), offset};
    refuse("unknown name " + std::string(base.name));
    return {};
}

uint32_t Line::constant(uint64_t bits) { return function_.constant(bits); }

void Line::emit(Handler handler, Type type, size_t sources) {
    if (handler == nullptr || count() != sources + 1)
        return refuse();
    Instruction instruction{.run = handler, .d = target(0, type)};
    instruction.a = source(1, type);
    if (sources > 1)
        instruction.b = source(2, type);
    if (sources > 2)
        instruction.c = source(3, type);
    emit(instruction);
}

void Line::emit(const Instruction& instruction, Decoded::Flow flow, std::vector<uint32_t> targets) {
    function_.add({instruction, flow, std::move(targets)});
}

void Line::refuse(const std::string& what) {
    function_.refuse(statement_.line, what + " in \"" + std::string(statement_.opcode) + "\"");
}

void Line::refuse() {
    function_.refuse(statement_.line, "unsupported instruction \"" + std::string(statement_.opcode) + "\"");
}

// --- FunctionDecoder ---

FunctionDecoder::FunctionDecoder(const FunctionText& text, const Symbols& symbols, Function& made)
    : text_(text), symbols_(symbols), made_(made) {}

void FunctionDecoder::declare() {
    made_.name = text_.name;
    made_.is_entry = text_.is_entry;
    made_.has_body = text_.has_body;
    made_.threads_max = text_.threads_max;
    uint64_t local = 0, parameters = 0;
    for (uint32_t i = 0; i < text_.variables.size(); ++i) {
        const Variable& variable = text_.variables[i];
        uint64_t& end = text_.is_entry && i < text_.parameters ? parameters : local;
        end = (end + variable.alignment - 1) / variable.alignment * variable.alignment;
        offsets_.push_back(static_cast<uint32_t>(end));
        const IndirectCall::Part part{static_cast<uint32_t>(end), static_cast<uint32_t>(variable.bytes())};
        if (i < text_.parameters)
            made_.parameters.push_back(part);
        else if (i < text_.parameters + text_.results)
            made_.results.push_back(part);
        end += variable.bytes();
    }
    made_.parameter_bytes = static_cast<uint32_t>(parameters);
    made_.local_bytes = static_cast<uint32_t>(local);
}

bool FunctionDecoder::decode(std::string& log) {
    for (const Statement& statement : text_.statements)
        if (error_.empty())
            decode(statement);
    // Behind the last instruction.
    Decoded end{{.run = run_return}, Decoded::Flow::end, {}};
    decoded_.push_back(end);
    for (const auto& [name, number] : label_numbers_)
        if (!positions_.contains(number))
            refuse(text_.line, "unknown label " + std::string(name));
    if (!error_.empty()) {
        log = error_;
        return false;
    }
    made_.constants.resize(constants_.size());
    made_.slots = sink() + 1 + static_cast<uint32_t>(constants_.size());
    for (const auto& [bits, slot] : constants_)
        made_.constants[slot - sink() - 1] = bits;
    lay_out(std::move(decoded_), positions_, made_);
    return true;
}

void FunctionDecoder::decode(const Statement& statement) {
    if (!statement.label.empty()) {
        const uint32_t number = label(statement.label);
        if (positions_.contains(number))
            return refuse(statement.line, "a second label " + std::string(statement.label));
        return place_label(number);
    }
    const size_t first = decoded_.size();
    Line line(*this, statement);
    const auto found = table().find(statement.opcode.substr(0, statement.opcode.find('.')));
    if (found == table().end())
        return line.refuse();
    std::optional<uint32_t> behind;
    if (!statement.guard.empty() && found->first != "bra") {
        behind = new_label();
        const Operand& guard = statement.guard[0];
        Operand plain = guard;
        plain.is_inverted = false;
        line.emit({.run = guard.is_inverted ? run_branch_if : run_branch_unless, .a = line.source(plain, Type::pred)},
                  Decoded::Flow::branch, {*behind});
    }
    found->second(line);
    if (!line.is_everything_taken())
        line.refuse();
    for (size_t i = first; i < decoded_.size(); ++i)
        decoded_[i].instruction.line = statement.line;
    if (behind)
        place_label(*behind);
}

uint32_t FunctionDecoder::constant(uint64_t bits) {
    const auto [found, is_new] = constants_.try_emplace(bits, sink() + 1 + static_cast<uint32_t>(constants_.size()));
    return found->second;
}

uint32_t FunctionDecoder::label(std::string_view name) {
    const auto [found, is_new] = label_numbers_.try_emplace(name, labels_);
    if (is_new)
        ++labels_;
    return found->second;
}

void FunctionDecoder::refuse(unsigned line, const std::string& what) {
    if (error_.empty())
        error_ = "ptxas error: line " + std::to_string(line) + ": " + what;
}

}  // namespace polder::ptx
