// The text of a PTX module as the parser sees it: variables, functions, and their statements with resolved names.
//
// Names are views into the text, which must outlive the tree.
#pragma once

#include "types.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace polder::ptx {

struct Operand {
    enum class Kind : uint8_t {
        reg,  // `index` among the function's registers
        variable,  // `index` among the function's variables
        name,  // of a variable of the module, a function, a label or a special register
        integer,  // `bits`
        real32,  // `bits`
        real64,
        address,  // `parts`: the base, without which it is 0; plus `bits`
        list,  // `parts`: a vector or the operands of a call in parentheses
        pair,  // d|p
        sink,  // _
    };
    Kind kind = Kind::sink;
    bool is_inverted = false;  // !p
    bool is_tuple = false;  // a list in parentheses
    uint32_t index = 0;
    uint64_t bits = 0;
    std::string_view name;
    std::vector<Operand> parts;
};

struct Statement {
    unsigned line = 0;
    std::string_view label;  // of a statement that is only a label
    std::string_view opcode;  // with its modifiers
    std::vector<Operand> operands;
    std::vector<Operand> guard;  // none or one
};

// One element of an initializer: a number, or an address with an offset of which only the bytes of `mask` are taken.
struct Initial {
    uint64_t bits = 0;
    std::string_view symbol;
    bool is_generic = false;
    uint64_t mask = ~uint64_t{0};
};

struct Variable {
    unsigned line = 0;
    Space space = Space::global;
    Type type = Type::none;
    unsigned alignment = 1;
    std::string_view name;
    uint64_t elements = 1;
    bool is_extern = false;
    std::vector<Initial> initial;

    [[nodiscard]] uint64_t bytes() const { return elements * bytes_of(type); }
};

struct Register {
    Type type;
};

struct FunctionText {
    unsigned line = 0;
    std::string_view name;
    bool is_entry = false;
    bool has_body = false;
    uint32_t threads_max = 0;  // .maxntid or .reqntid; 0: not given
    // Among `variables`: parameters first, then results.
    uint32_t parameters = 0;
    uint32_t results = 0;
    std::vector<Variable> variables;
    std::vector<Register> registers;
    std::vector<Statement> statements;
    struct Targets {
        std::string_view name;
        std::vector<std::string_view> labels;
    };
    std::vector<Targets> targets;  // .branchtargets
};

struct ModuleText {
    unsigned processor = 0;  // 90 for sm_90
    std::vector<Variable> variables;
    std::vector<FunctionText> functions;
};

}  // namespace polder::ptx
