#include <algorithm>
#include <charconv>
#include <cuda/required_sizes.h>

namespace polder::cuda {
namespace {

constexpr std::string_view directive = ".reqntid ";

// Calls `take` with the place of each directive, which begins a line, and its line. LLVM writes it behind the entry's parameters.
void for_each_directive(std::string_view ptx, auto&& take) {
    for (size_t at = ptx.find(directive); at != ptx.npos; at = ptx.find(directive, at + 1))
        if (at == 0 || ptx[at - 1] == '\n')
            take(at, ptx.substr(at, std::min(ptx.find('\n', at), ptx.size()) - at));
}

// The name of the last entry that begins in `ptx`.
std::string_view last_entry(std::string_view ptx) {
    constexpr std::string_view word = ".entry ";
    const size_t at = ptx.rfind(word);
    if (at == ptx.npos)
        return {};
    const std::string_view rest = ptx.substr(at + word.size());
    return rest.substr(0, rest.find_first_of("( \n"));
}

// Of "4, 128, 1".
uint64_t product_of(std::string_view numbers) {
    uint64_t product = 1;
    while (!numbers.empty()) {
        uint64_t number = 0;
        const auto [rest, error] = std::from_chars(numbers.data(), numbers.data() + numbers.size(), number);
        if (error != std::errc{})
            return product;
        product *= number;
        numbers.remove_prefix(static_cast<size_t>(rest - numbers.data()));
        numbers.remove_prefix(std::min(numbers.find_first_not_of(", "), numbers.size()));
    }
    return product;
}

}  // namespace

std::vector<RequiredSize> required_sizes(std::string_view ptx) {
    std::vector<RequiredSize> sizes;
    for_each_directive(ptx, [&](size_t at, std::string_view line) {
        sizes.push_back({std::string(last_entry(ptx.substr(0, at))), product_of(line.substr(directive.size()))});
    });
    return sizes;
}

std::string without_required_sizes(std::string ptx) {
    const std::string_view text = ptx;
    for_each_directive(text, [&](size_t at, std::string_view line) { ptx.replace(at, line.size(), line.size(), ' '); });
    return ptx;
}

}  // namespace polder::cuda
