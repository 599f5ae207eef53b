// The names of a function while it is parsed: registers and variables, of which the innermost declaration counts. A call has a
// block of its own for its parameters, and calls use the same names again.
#pragma once

#include "syntax.h"

#include <map>
#include <optional>

namespace polder::ptx {

class Names {
public:
    void open() { scopes_.emplace_back(); }
    void close() { scopes_.pop_back(); }
    [[nodiscard]] size_t depth() const { return scopes_.size(); }
    void add_register(std::string_view name, uint32_t index) { scopes_.back().one[name] = {Kind::reg, index}; }
    // name0 to name<count - 1>.
    void add_registers(std::string_view prefix, uint32_t first, uint32_t count) {
        scopes_.back().rows[prefix] = {first, count};
    }
    void add_variable(std::string_view name, uint32_t index) { scopes_.back().one[name] = {Kind::variable, index}; }

    [[nodiscard]] std::optional<Operand> find(std::string_view name) const;

private:
    using Kind = Operand::Kind;
    struct One {
        Kind kind;
        uint32_t index;
    };
    struct Row {
        uint32_t first;
        uint32_t count;
    };
    struct Scope {
        std::map<std::string_view, One> one;
        std::map<std::string_view, Row> rows;
    };
    std::vector<Scope> scopes_;
};

}  // namespace polder::ptx
