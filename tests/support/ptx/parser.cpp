// A parser by recursive descent over the tokens: directives of the module, variables, functions, and in these declarations,
// labels, blocks in braces and instructions. What serves debuggers (.file, .loc, .section) is skipped.
#include "parser.h"

#include "lexer.h"
#include "names.h"
#include "number.h"

#include <charconv>
#include <utility>

namespace polder::ptx {
namespace {

class Parser {
public:
    Parser(std::string_view text, std::string& log) : lexer_(text), log_(log) { token_ = lexer_.next(); }

    std::optional<ModuleText> run() {
        while (!has_failed_ && token_.kind != Token::Kind::end)
            directive();
        if (!has_failed_ && module_.processor == 0)
            refuse("no .target");
        return has_failed_ ? std::nullopt : std::optional(std::move(module_));
    }

private:
    using Kind = Operand::Kind;
    struct Linkage {
        bool is_extern = false;
    };

    // The first error counts; the end of the text then ends all loops.
    void refuse(const std::string& what) {
        if (!std::exchange(has_failed_, true))
            log_ = "ptxas error: line " + std::to_string(token_.line) + ": " + what;
        token_ = {Token::Kind::end, {}, token_.line};
    }
    void advance() {
        if (!has_failed_)
            token_ = lexer_.next();
    }
    [[nodiscard]] bool is(std::string_view text) const {
        return token_.kind != Token::Kind::string && token_.text == text && token_.kind != Token::Kind::end;
    }
    bool take(std::string_view text) {
        if (!is(text))
            return false;
        advance();
        return true;
    }
    void expect(std::string_view text) {
        if (!take(text))
            refuse("expected " + std::string(text) + " before \"" + std::string(token_.text) + "\"");
    }
    std::string_view word() {
        if (token_.kind != Token::Kind::word) {
            refuse("expected a name before \"" + std::string(token_.text) + "\"");
            return {};
        }
        const std::string_view text = token_.text;
        advance();
        return text;
    }
    uint64_t integer() {
        const auto number = number_of(word());
        if (!number || number->kind != Kind::integer) {
            refuse("expected an integer");
            return 0;
        }
        return number->bits;
    }
    void skip_line(unsigned line) {
        while (token_.kind != Token::Kind::end && token_.line == line)
            advance();
    }
    void skip_braces() {
        expect("{");
        for (int depth = 1; depth > 0 && token_.kind != Token::Kind::end; advance())
            depth += is("{") ? 1 : is("}") ? -1 : 0;
    }
    // True: the directive is for debuggers or a hint, and was skipped.
    bool skip_remark() {
        const unsigned line = token_.line;
        if (is(".file") || is(".loc")) {
            skip_line(line);
        } else if (take(".section")) {
            word();
            skip_braces();
        } else if (take(".pragma")) {
            advance();
            expect(";");
        } else {
            return false;
        }
        return true;
    }

    void directive() {
        if (skip_remark())
            return;
        if (take(".version")) {
            word();
        } else if (take(".target")) {
            target();
        } else if (take(".address_size")) {
            if (integer() != 64)
                refuse(".address_size is not 64");
        } else {
            declaration();
        }
    }

    void target() {
        const std::string_view name = word();
        const std::string_view number = name.substr(std::min(name.find_first_of("0123456789"), name.size()));
        if (!name.starts_with("sm_") ||
            std::from_chars(number.data(), number.data() + number.size(), module_.processor).ec != std::errc())
            refuse("unknown target " + std::string(name));
        while (take(","))
            word();
    }

    void declaration() {
        Linkage linkage;
        while (is(".visible") || is(".extern") || is(".weak") || is(".common")) {
            linkage.is_extern |= is(".extern");
            advance();
        }
        if (is(".entry") || is(".func"))
            function(linkage);
        else if (is(".global") || is(".const") || is(".shared"))
            module_.variables.push_back(variable(linkage, ";"));
        else
            refuse("unknown directive \"" + std::string(token_.text) + "\"");
    }

    // .global .align 8 .b8 name[16] = {1, 2};  A parameter ends without a semicolon.
    Variable variable(Linkage linkage, std::string_view end) {
        Variable made;
        made.line = token_.line;
        made.is_extern = linkage.is_extern;
        made.space = space_named(word().substr(1)).value_or(Space::generic);
        uint64_t vector = 1;
        for (bool has_type = false; !has_type && !has_failed_;) {
            const std::string_view attribute = word();
            if (attribute == ".align") {
                made.alignment = static_cast<unsigned>(integer());
            } else if (attribute == ".v2" || attribute == ".v4") {
                vector = attribute == ".v2" ? 2 : 4;
            } else if (const auto type = attribute.empty() ? std::nullopt : type_named(attribute.substr(1))) {
                made.type = *type;
                has_type = true;
            } else {
                refuse("unknown attribute " + std::string(attribute));
            }
        }
        // What a kernel's parameter points to.
        if (take(".ptr")) {
            while (is(".global") || is(".shared") || is(".const") || is(".local"))
                advance();
            if (take(".align"))
                integer();
        }
        made.alignment = std::max(made.alignment, static_cast<unsigned>(vector * bytes_of(made.type)));
        made.name = word();
        made.elements = vector;
        while (take("[")) {
            made.elements *= is("]") ? 0 : integer();
            expect("]");
        }
        if (take("="))
            initializer(made.initial);
        if (made.elements == 0 && !made.initial.empty())
            made.elements = made.initial.size();
        if (!end.empty())
            expect(end);
        return made;
    }

    void initializer(std::vector<Initial>& list) {
        if (!take("{")) {
            list.push_back(initial());
            return;
        }
        while (!is("}") && !has_failed_) {
            if (is("{"))
                initializer(list);
            else
                list.push_back(initial());
            if (!take(","))
                break;
        }
        expect("}");
    }

    // 5, -5, 0f3F800000, name, name+4, generic(name)+4, 0xFF00(generic(name)).
    Initial initial() {
        Initial made;
        const bool is_negative = take("-");
        if (const auto number = number_of(token_.text)) {
            advance();
            if (take("(")) {
                made = initial();
                made.mask = number->bits;
                expect(")");
                return made;
            }
            made.bits = is_negative ? ~number->bits + 1 : number->bits;
            return made;
        }
        made.symbol = word();
        if (made.symbol == "generic") {
            made.is_generic = true;
            expect("(");
            made.symbol = word();
            expect(")");
        }
        if (take("+"))
            made.bits = offset();
        return made;
    }
    uint64_t offset() {
        const bool is_negative = take("-");
        const uint64_t value = integer();
        return is_negative ? ~value + 1 : value;
    }

    // --- functions ---

    void function(Linkage linkage) {
        FunctionText made;
        made.line = token_.line;
        made.is_entry = word() == ".entry";
        function_ = &made;
        names_ = {};
        names_.open();
        std::vector<Variable> results;
        if (!made.is_entry && is("("))
            results = parameter_list();
        made.name = word();
        if (is("("))
            made.variables = parameter_list();
        made.parameters = static_cast<uint32_t>(made.variables.size());
        made.results = static_cast<uint32_t>(results.size());
        made.variables.insert(made.variables.end(), results.begin(), results.end());
        for (uint32_t i = 0; i < made.variables.size(); ++i)
            names_.add_variable(made.variables[i].name, i);
        tuning(made);
        if (!take(";")) {
            expect("{");
            made.has_body = true;
            body();
        }
        if (linkage.is_extern && made.has_body)
            refuse("an .extern function with a body");
        function_ = nullptr;
        module_.functions.push_back(std::move(made));
    }

    // How many threads a block has, and hints.
    void tuning(FunctionText& made) {
        while (token_.kind == Token::Kind::word && !has_failed_) {
            const std::string_view name = word();
            if (name == ".noreturn" || name == ".explicitcluster")
                continue;
            uint64_t product = integer();
            while (take(","))
                product *= integer();
            if (name == ".maxntid" || name == ".reqntid")
                made.threads_max = static_cast<uint32_t>(product);
            else if (name != ".minnctapersm" && name != ".maxnreg" && name != ".maxclusterrank")
                refuse("unknown directive " + std::string(name));
        }
    }

    std::vector<Variable> parameter_list() {
        std::vector<Variable> list;
        expect("(");
        while (!is(")") && !has_failed_) {
            list.push_back(variable({}, ""));
            if (!take(","))
                break;
        }
        expect(")");
        return list;
    }

    void body() {
        const size_t outermost = names_.depth();
        while (!has_failed_) {
            if (token_.kind == Token::Kind::end) {
                refuse("the text ends within a function");
            } else if (take("{")) {
                names_.open();
            } else if (take("}")) {
                if (names_.depth() == outermost)
                    return;
                names_.close();
            } else if (!skip_remark()) {
                item();
            }
        }
    }

    void item() {
        if (take(".reg")) {
            registers();
        } else if (is(".param") || is(".local")) {
            function_->variables.push_back(variable({}, ";"));
            names_.add_variable(function_->variables.back().name,
                                static_cast<uint32_t>(function_->variables.size() - 1));
        } else if (is(".shared") || is(".global") || is(".const")) {
            module_.variables.push_back(variable({}, ";"));
        } else {
            instruction();
        }
    }

    void registers() {
        const std::string_view type_name = word();
        const auto type = type_name.empty() ? std::nullopt : type_named(type_name.substr(1));
        if (!type)
            return refuse("unknown type " + std::string(type_name));
        do {
            const std::string_view name = word();
            const auto first = static_cast<uint32_t>(function_->registers.size());
            uint64_t count = 1;
            if (take("<")) {
                count = integer();
                expect(">");
                if (count > max_registers)
                    return refuse("too many registers");
                names_.add_registers(name, first, static_cast<uint32_t>(count));
            } else {
                names_.add_register(name, first);
            }
            function_->registers.resize(first + count, {*type});
        } while (take(","));
        expect(";");
    }

    void instruction() {
        Statement made;
        made.line = token_.line;
        if (take("@")) {
            const bool is_inverted = take("!");
            made.guard.push_back(operand());
            made.guard.back().is_inverted ^= is_inverted;
        }
        const std::string_view name = word();
        if (made.guard.empty() && take(":")) {
            if (is(".branchtargets"))
                return branch_targets(name);
            if (is(".callprototype")) {
                while (!is(";") && token_.kind != Token::Kind::end)
                    advance();
                return expect(";");
            }
            made.label = name;
            function_->statements.push_back(std::move(made));
            return;
        }
        made.opcode = name;
        while (!is(";") && !has_failed_) {
            made.operands.push_back(operand());
            if (!take(","))
                break;
        }
        expect(";");
        function_->statements.push_back(std::move(made));
    }

    void branch_targets(std::string_view name) {
        advance();
        FunctionText::Targets made{name, {}};
        do
            made.labels.push_back(word());
        while (take(","));
        expect(";");
        function_->targets.push_back(std::move(made));
    }

    Operand operand() {
        Operand made = simple_operand();
        if (!take("|"))
            return made;
        Operand pair;
        pair.kind = Kind::pair;
        pair.parts.push_back(std::move(made));
        pair.parts.push_back(simple_operand());
        return pair;
    }

    Operand simple_operand() {
        if (take("["))
            return address();
        if (is("{") || is("("))
            return list();
        Operand made;
        const bool is_inverted = take("!");
        const bool is_negative = take("-");
        if (is("_")) {
            advance();
        } else if (const auto number = number_of(token_.text)) {
            advance();
            made = *number;
            if (is_negative)
                made.bits = made.kind == Kind::integer
                                ? ~made.bits + 1
                                : made.bits ^ (made.kind == Kind::real32 ? 1ull << 31 : 1ull << 63);
        } else {
            made = named(word());
        }
        made.is_inverted = is_inverted;
        return made;
    }

    Operand named(std::string_view name) {
        if (const auto found = names_.find(name))
            return *found;
        Operand made;
        made.kind = Kind::name;
        made.name = name;
        return made;
    }

    Operand address() {
        Operand made;
        made.kind = Kind::address;
        if (const auto number = number_of(token_.text)) {
            advance();
            made.bits = number->bits;
        } else {
            made.parts.push_back(named(word()));
            if (take("+"))
                made.bits = offset();
            else if (take("-"))
                made.bits = ~integer() + 1;
        }
        expect("]");
        return made;
    }

    Operand list() {
        Operand made;
        made.kind = Kind::list;
        made.is_tuple = is("(");
        advance();
        const std::string_view end = made.is_tuple ? ")" : "}";
        while (!is(end) && !has_failed_) {
            made.parts.push_back(simple_operand());
            if (!take(","))
                break;
        }
        expect(end);
        return made;
    }

    static constexpr uint64_t max_registers = 1u << 20;

    Lexer lexer_;
    std::string& log_;
    Token token_;
    bool has_failed_ = false;
    ModuleText module_;
    FunctionText* function_ = nullptr;
    Names names_;
};

}  // namespace

std::optional<ModuleText> parse(std::string_view text, std::string& log) { return Parser(text, log).run(); }

}  // namespace polder::ptx
