// From statements to code: what a statement's decoder is given (Line), and the decoding of a whole function.
//
// Instructions are found by the first part of their opcode in a table, to which each group of instructions adds its own. Every modifier
// must be taken by the decoder of its instruction; one that is not is unsupported, as an unknown instruction is.
#pragma once

#include "code.h"
#include "syntax.h"

#include <initializer_list>
#include <map>
#include <optional>
#include <string>

namespace polder::ptx {

// What the module knows of its names.
class Symbols {
public:
    struct Variable {
        Space space;
        uint64_t address;
    };
    std::map<std::string_view, Variable> variables;
    std::map<std::string_view, uint32_t> functions;  // their numbers
    std::vector<const Function*> by_number;
    unsigned processor = 0;  // the module's target
};

// An address as instructions use it: slot + offset.
struct Place {
    Space space = Space::generic;
    uint32_t base = 0;
    int64_t offset = 0;
};

// An instruction with its successors, before the order of blocks is known.
struct Decoded {
    Instruction instruction;
    enum class Flow : uint8_t { next, jump, branch, table, end } flow = Flow::next;
    std::vector<uint32_t> targets;  // numbers of labels
};

class FunctionDecoder;

class Line {
public:
    Line(FunctionDecoder& function, const Statement& statement);

    [[nodiscard]] bool has(std::string_view modifier) const;
    bool take(std::string_view modifier);
    // The first of `modifiers` that is there; `otherwise` when none is.
    std::string_view take_one(std::initializer_list<std::string_view> modifiers, std::string_view otherwise = {});
    // Takes the next modifier that is a type. Type::none: there is none.
    Type take_type();
    std::optional<Space> take_space();
    [[nodiscard]] bool is_everything_taken() const { return rest_.empty(); }

    [[nodiscard]] size_t count() const { return statement_.operands.size(); }
    [[nodiscard]] const Operand& operand(size_t number);
    // A register, or a slot with the constant, of at least as many bits as `type` has.
    [[nodiscard]] uint32_t source(size_t number, Type type) { return source(operand(number), type); }
    [[nodiscard]] uint32_t source(const Operand& operand, Type type);
    [[nodiscard]] uint32_t target(size_t number, Type type) { return target(operand(number), type); }
    [[nodiscard]] uint32_t target(const Operand& operand, Type type);
    [[nodiscard]] Place place(size_t number, Space space);
    [[nodiscard]] uint32_t constant(uint64_t bits);
    [[nodiscard]] const Statement& statement() const { return statement_; }
    [[nodiscard]] FunctionDecoder& function() { return function_; }

    // d, a, b, c from the operands in order, all of `type`.
    void emit(Handler handler, Type type, size_t sources);
    void emit(const Instruction& instruction, Decoded::Flow flow = Decoded::Flow::next,
              std::vector<uint32_t> targets = {});
    void refuse(const std::string& what);
    // "unsupported instruction"
    void refuse();

private:
    FunctionDecoder& function_;
    const Statement& statement_;
    std::vector<std::string_view> rest_;  // modifiers that are not taken
};

using Decode = void (*)(Line&);
using Table = std::map<std::string_view, Decode>;

// Each in a file of its own.
void add_integers(Table& table);
void add_bits(Table& table);
void add_floats(Table& table);
void add_approximations(Table& table);
void add_comparisons(Table& table);
void add_conversions(Table& table);
void add_moves(Table& table);
void add_accesses(Table& table);
void add_atomics(Table& table);
void add_control(Table& table);
void add_calls(Table& table);
void add_barriers(Table& table);
void add_warps(Table& table);

class FunctionDecoder {
public:
    FunctionDecoder(const FunctionText& text, const Symbols& symbols, Function& made);

    // The frame: parameters and the places of variables. All functions of a module are declared before one is decoded.
    void declare();
    // False: `log` has the line and the instruction.
    [[nodiscard]] bool decode(std::string& log);

    [[nodiscard]] const FunctionText& text() const { return text_; }
    [[nodiscard]] const Symbols& symbols() const { return symbols_; }
    [[nodiscard]] Function& made() { return made_; }
    [[nodiscard]] uint32_t constant(uint64_t bits);
    [[nodiscard]] uint32_t sink() const { return static_cast<uint32_t>(text_.registers.size()) + 1; }
    [[nodiscard]] uint32_t label(std::string_view name);
    [[nodiscard]] uint32_t new_label() { return labels_++; }
    void place_label(uint32_t label) { positions_[label] = static_cast<uint32_t>(decoded_.size()); }
    [[nodiscard]] uint32_t offset_of(uint32_t variable) const { return offsets_[variable]; }
    void add(Decoded decoded) { decoded_.push_back(std::move(decoded)); }
    void refuse(unsigned line, const std::string& what);

private:
    void decode(const Statement& statement);

    const FunctionText& text_;
    const Symbols& symbols_;
    Function& made_;
    std::string error_;
    std::vector<uint32_t> offsets_;  // of variables, in local memory or among the parameters of an entry
    std::map<uint64_t, uint32_t> constants_;
    std::map<std::string_view, uint32_t> label_numbers_;
    uint32_t labels_ = 0;
    std::map<uint32_t, uint32_t> positions_;  // of labels, as indices of decoded_
    std::vector<Decoded> decoded_;
};

}  // namespace polder::ptx
