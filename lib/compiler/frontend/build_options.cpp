// One table lists the options, where each is allowed, and what it does. The parser splits the text into words, looks each up,
// and either passes it to Clang, applies it to BuildOptions, or ignores it.
#include "build_options.h"

#include <base/options.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace polder::compiler {
namespace {

enum class Action : uint8_t {
    pass,  // passed to Clang unchanged
    pass_value,  // passed to Clang with its value, which may be the next word
    ignore,  // accepted without effect: the option is always on, or it permits something that is not done
    ignore_value,  // the same, with a value
    set_standard,  // -cl-std=
    disable_optimizations,
    flush_subnormals,
    add_debug_information,
    create_library,
    enable_link_options,
};

// Where an option may be given.
enum class Place : uint8_t { compiling, linking, both };

struct Option {
    std::string_view name;  // ending in '=': a value follows in the same word
    Action action;
    Place place;
    std::string_view prose;
};

constexpr std::array options_table{
    Option{"-D", Action::pass_value, Place::compiling, "defines a macro"},
    Option{"-U", Action::pass_value, Place::compiling, "takes a macro's definition back"},
    Option{"-I", Action::pass_value, Place::compiling, "adds a directory to the search path of #include"},
    Option{"-include", Action::pass_value, Place::compiling, "includes a file first"},
    Option{"-w", Action::pass, Place::compiling, "no warnings"},
    Option{"-Werror", Action::pass, Place::compiling, "warnings are errors"},
    Option{"-cl-std=", Action::set_standard, Place::compiling, "the version of OpenCL C or C++ for OpenCL"},
    Option{"-cl-single-precision-constant", Action::pass, Place::compiling, "double literals are float"},
    Option{"-cl-denorms-are-zero", Action::flush_subnormals, Place::both, "subnormal numbers are 0"},
    Option{"-cl-fp32-correctly-rounded-divide-sqrt", Action::pass, Place::compiling, "no approximation of / and sqrt"},
    Option{"-cl-opt-disable", Action::disable_optimizations, Place::compiling, "no optimisation"},
    Option{"-cl-strict-aliasing", Action::ignore, Place::compiling, "of OpenCL 1.0; no effect"},
    Option{"-cl-uniform-work-group-size", Action::pass, Place::compiling, "work-groups are uniform"},
    Option{"-cl-no-subgroup-ifp", Action::ignore, Place::both, "sub-groups need no independent progress"},
    Option{"-cl-mad-enable", Action::pass, Place::both, "a * b + c may be less precise"},
    Option{"-cl-no-signed-zeros", Action::pass, Place::both, "the sign of zero may be ignored"},
    Option{"-cl-unsafe-math-optimizations", Action::pass, Place::both, "algebra as with real numbers"},
    Option{"-cl-finite-math-only", Action::pass, Place::both, "no NaN, no infinity"},
    Option{"-cl-fast-relaxed-math", Action::pass, Place::both, "the two above"},
    Option{"-cl-kernel-arg-info", Action::pass, Place::compiling, "argument information is kept"},
    Option{"-g", Action::add_debug_information, Place::compiling, "debug information"},
    Option{"-s", Action::ignore_value, Place::compiling, "a file for a debugger to find the source in"},
    Option{"-x", Action::ignore_value, Place::compiling, "the language; it is OpenCL C"},
    Option{"-create-library", Action::create_library, Place::linking, "the result is a library"},
    Option{"-enable-link-options", Action::enable_link_options, Place::linking, "a library may be linked with options"},
};

// Families whose members are too many to list: -O2, -Wno-..., -fno-..., -ferror-limit=...
constexpr std::array<std::string_view, 1> passed_prefixes{"-W"};
constexpr std::array<std::string_view, 3> ignored_prefixes{"-O", "-cl-intel-", "-cl-amd-"};

constexpr std::array<std::string_view, 10> standards{"CL",    "CL1.0", "CL1.1", "CL1.2",    "CL2.0",
                                                     "CL3.0", "CL3.1", "CLC++", "CLC++1.0", "CLC++2021"};

Status error_of(OptionStage stage) {
    switch (stage) {
    case OptionStage::build: return Status::invalid_build_options;
    case OptionStage::compile: return Status::invalid_compiler_options;
    case OptionStage::link: return Status::invalid_linker_options;
    }
    return Status::invalid_build_options;
}

bool is_allowed(Place place, OptionStage stage) {
    switch (stage) {
    // A build makes an executable, so it does not allow the options that make a library.
    case OptionStage::build:
    case OptionStage::compile: return place != Place::linking;
    case OptionStage::link: return place != Place::compiling;
    }
    return false;
}

bool is_prefix_of(std::string_view prefix, std::string_view word) { return word.substr(0, prefix.size()) == prefix; }

bool takes_value(Action action) { return action == Action::pass_value || action == Action::ignore_value; }

bool matches(const Option& option, std::string_view word) {
    if (option.name.back() == '=')
        return is_prefix_of(option.name, word);
    // -DNAME: one-letter options take their value in the same word too.
    return word == option.name ||
           (option.action == Action::pass_value && option.name.size() == 2 && is_prefix_of(option.name, word));
}

const Option* find(std::string_view word) {
    const auto found = std::find_if(options_table.begin(), options_table.end(),
                                    [&](const Option& option) { return matches(option, word); });
    return found == options_table.end() ? nullptr : &*found;
}

// Whether the macro of a -D has a valid name. Clang's own message for an invalid one comes later and is hard to understand.
bool is_macro(std::string_view value) {
    return !value.empty() && (std::isalpha(static_cast<unsigned char>(value[0])) != 0 || value[0] == '_');
}

class Parser {
public:
    Parser(std::vector<std::string> words, OptionStage stage) : words_(std::move(words)), stage_(stage) {}

    Result<BuildOptions> run() {
        while (next_ < words_.size())
            POLDER_TRY(parse(words_[next_++]));
        if (parsed_.enables_link_options && !parsed_.makes_library)
            return refuse("-enable-link-options needs -create-library");
        return std::move(parsed_);
    }

private:
    tl::unexpected<Error> refuse(const std::string& why) const { return fail(error_of(stage_), "error: " + why); }

    Result<void> parse(const std::string& word) {
        if (const Option* option = find(word))
            return apply(*option, word);
        const auto in = [&](const auto& prefixes) {
            return stage_ != OptionStage::link &&
                   std::any_of(prefixes.begin(), prefixes.end(),
                               [&](std::string_view prefix) { return is_prefix_of(prefix, word); });
        };
        if (in(passed_prefixes)) {
            parsed_.clang.push_back(word);
            return {};
        }
        if (in(ignored_prefixes))
            return {};
        return refuse("unknown option '" + word + "'");
    }

    Result<void> apply(const Option& option, const std::string& word) {
        if (!is_allowed(option.place, stage_))
            return refuse("'" + word + "' is not an option of this step");
        std::string value = word.substr(std::min(word.size(), option.name.size()));
        if (value.empty() && takes_value(option.action)) {
            if (next_ == words_.size())
                return refuse("'" + word + "' needs a value");
            value = words_[next_++];
        }
        switch (option.action) {
        case Action::pass: parsed_.clang.push_back(word); return {};
        case Action::pass_value: return pass(option, value);
        case Action::ignore:
        case Action::ignore_value: return {};
        case Action::set_standard: return set_standard(value);
        case Action::disable_optimizations: parsed_.is_optimized = false; return {};
        case Action::flush_subnormals: parsed_.flushes_subnormals = true; return {};
        case Action::add_debug_information: parsed_.has_debug_information = true; return {};
        case Action::create_library: parsed_.makes_library = true; return {};
        case Action::enable_link_options: parsed_.enables_link_options = true; return {};
        }
        return {};
    }

    Result<void> pass(const Option& option, const std::string& value) {
        if ((option.name == "-D" || option.name == "-U") && !is_macro(value))
            return refuse("'" + value + "' is not a macro");
        parsed_.clang.emplace_back(option.name);
        parsed_.clang.push_back(value);
        return {};
    }

    Result<void> set_standard(const std::string& value) {
        if (std::find(standards.begin(), standards.end(), value) == standards.end())
            return refuse("'" + value + "' is not a version of OpenCL C or C++ for OpenCL");
        if (!options::ignore_cl_std())
            parsed_.standard = value;
        return {};
    }

    const std::vector<std::string> words_;
    const OptionStage stage_;
    size_t next_ = 0;
    BuildOptions parsed_;
};

// POCL_EXTRA_BUILD_FLAGS may hold any option of Clang, so it is not checked.
void add_extra_flags(BuildOptions& parsed) {
    auto words = split_options(options::extra_build_flags());
    if (!words)
        return;
    for (std::string& word : *words) {
        if (is_prefix_of("-cl-std=", word))
            parsed.standard = word.substr(8);
        else if (word == "-cl-opt-disable")
            parsed.is_optimized = false;
        else if (word == "-cl-denorms-are-zero")
            parsed.flushes_subnormals = true;
        else if (word == "-g")
            parsed.has_debug_information = true;
        else if (const Option* option = find(word);
                 option == nullptr || option->action == Action::pass || option->action == Action::pass_value)
            parsed.clang.push_back(std::move(word));
    }
}

}  // namespace

Result<std::vector<std::string>> split_options(std::string_view text) {
    std::vector<std::string> words;
    std::optional<std::string> word;
    char quote = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const bool is_escape = c == '\\' && quote != '\'' && i + 1 < text.size() &&
                               std::string_view{"\"'\\ "}.find(text[i + 1]) != std::string_view::npos;
        if (is_escape) {
            word = word.value_or("") + text[++i];
        } else if (quote != 0 ? c == quote : (c == '"' || c == '\'')) {
            quote = quote != 0 ? char{0} : c;
            word = word.value_or("");
        } else if (quote == 0 && std::isspace(static_cast<unsigned char>(c)) != 0) {
            if (word)
                words.push_back(*std::exchange(word, std::nullopt));
        } else {
            word = word.value_or("") + c;
        }
    }
    if (quote != 0)
        return fail(Status::invalid_value, "a quote is not closed");
    if (word)
        words.push_back(*word);
    return words;
}

Result<BuildOptions> parse_options(std::string_view text, OptionStage stage) {
    auto words = split_options(text);
    if (!words)
        return fail(error_of(stage), "error: " + std::string{words.error().detail()} + " in the options");
    auto parsed = Parser{std::move(*words), stage}.run();
    if (parsed && stage != OptionStage::link)
        add_extra_flags(*parsed);
    return parsed;
}

Result<void> check_options(std::string_view text, OptionStage stage) {
    POLDER_TRY(parse_options(text, stage));
    return {};
}

}  // namespace polder::compiler
