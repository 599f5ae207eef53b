// Parses the settings of allocation policies. One table has the keys; the warning about an unknown one lists them.
#include <base/options.h>
#include <base/sizes.h>
#include <memory/allocation_policy.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <vector>

namespace polder::memory {
namespace {

// As in PyTorch, max_split_size must be larger than a large segment.
constexpr uint64_t max_split_mb_min = 21;

std::optional<uint64_t> number(std::string_view text) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return value;
}

bool parse_backend(AllocationPolicy& policy, std::string_view text) {
    using Backend = AllocationPolicy::Backend;
    for (const Backend backend : {Backend::bufalloc, Backend::caching, Backend::bucket})
        if (text == name_of(backend))
            return policy.backend = backend, true;
    return false;
}

bool parse_max_split(AllocationPolicy& policy, std::string_view text) {
    const auto mebibytes = number(text);
    if (!mebibytes || *mebibytes < max_split_mb_min || *mebibytes > AllocationPolicy::unlimited / MiB)
        return false;
    policy.max_split_size = ByteCount{*mebibytes * MiB};
    return true;
}

std::optional<uint32_t> division(std::string_view text) {
    const auto value = number(text);
    if (!value || *value > 4096 || (*value != 0 && !std::has_single_bit(*value)))
        return std::nullopt;
    return static_cast<uint32_t>(*value);
}

// "[256:1,512:2,>:8]": 1 for sizes below 256 MiB, 2 from there to 512 MiB, 8 above.
bool parse_division_list(AllocationPolicy& policy, std::string_view list) {
    AllocationPolicy::Divisions divisions{};
    size_t from = 0;
    while (!list.empty()) {
        const size_t comma = list.find(',');
        const std::string_view entry = list.substr(0, comma);
        list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
        const size_t colon = entry.find(':');
        if (colon == std::string_view::npos)
            return false;
        const auto value = division(entry.substr(colon + 1));
        size_t until = divisions.size();
        if (entry.substr(0, colon) != ">") {
            const auto mebibytes = number(entry.substr(0, colon));
            if (!mebibytes || !std::has_single_bit(*mebibytes))
                return false;
            until = std::min(until, static_cast<size_t>(std::countr_zero(*mebibytes)));
        }
        if (!value || until < from)
            return false;
        std::fill(divisions.begin() + static_cast<ptrdiff_t>(from), divisions.begin() + static_cast<ptrdiff_t>(until),
                  *value);
        from = until;
    }
    policy.roundup_power2_divisions = divisions;
    return true;
}

bool parse_divisions(AllocationPolicy& policy, std::string_view text) {
    if (text.starts_with('[') && text.ends_with(']'))
        return parse_division_list(policy, text.substr(1, text.size() - 2));
    const auto value = division(text);
    if (value)
        policy.roundup_power2_divisions.fill(*value);
    return value.has_value();
}

bool parse_threshold(AllocationPolicy& policy, std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !(value > 0 && value < 1))
        return false;
    policy.garbage_collection_threshold = value;
    return true;
}

bool parse_flag(bool& flag, std::string_view text) {
    const bool on = text == "True" || text == "true" || text == "1";
    if (!on && text != "False" && text != "false" && text != "0")
        return false;
    flag = on;
    return true;
}

bool parse_expandable(AllocationPolicy& policy, std::string_view text) {
    return parse_flag(policy.expandable_segments, text);
}

bool parse_grow_ahead(AllocationPolicy& policy, std::string_view text) { return parse_flag(policy.grow_ahead, text); }

bool parse_persistent(AllocationPolicy& policy, std::string_view text) { return parse_flag(policy.persistent, text); }

bool parse_pinned(AllocationPolicy& policy, std::string_view text) {
    using Pinned = AllocationPolicy::Pinned;
    bool always = false;
    if (text == "auto")
        policy.pinned = Pinned::by_use;
    else if (parse_flag(always, text))
        policy.pinned = always ? Pinned::always : Pinned::never;
    else
        return false;
    return true;
}

bool parse_max_bytes(AllocationPolicy& policy, std::string_view text) {
    const auto bytes = options::parse_bytes(text);
    if (bytes)
        policy.max_bytes = ByteCount{*bytes};
    return bytes.has_value();
}

struct Key {
    std::string_view name;
    std::string_view values;
    bool (*parse)(AllocationPolicy&, std::string_view);
};
constexpr Key keys[] = {
    {"backend", "bufalloc, caching or bucket", parse_backend},
    {"max_split_size_mb", "a number above 20", parse_max_split},
    {"roundup_power2_divisions", "a power of two, or a list such as [256:1,512:2,>:4]", parse_divisions},
    {"garbage_collection_threshold", "a number between 0 and 1", parse_threshold},
    {"expandable_segments", "True or False", parse_expandable},
    {"grow_ahead", "True or False", parse_grow_ahead},
    {"max_bytes", "bytes, such as 512M", parse_max_bytes},
    {"persistent", "True or False", parse_persistent},
    {"pinned", "True, False or auto", parse_pinned},
};

const Key* find_key(std::string_view name) {
    const auto found = std::ranges::find(keys, name, &Key::name);
    return found == std::end(keys) ? nullptr : &*found;
}

// Calls f(part, name, value) for each part between commas that are not in brackets.
template <class F>
void for_each_part(std::string_view text, F&& f) {
    while (!text.empty()) {
        size_t end = 0;
        for (int depth = 0; end < text.size() && (depth > 0 || text[end] != ','); ++end)
            depth += text[end] == '[' ? 1 : text[end] == ']' ? -1 : 0;
        const std::string_view part = text.substr(0, end);
        text = end == text.size() ? std::string_view{} : text.substr(end + 1);
        const size_t separator = std::min(part.find_first_of(":="), part.size());
        f(part, part.substr(0, separator), part.substr(std::min(separator + 1, part.size())));
    }
}

void append(std::string& list, std::string_view separator, std::string_view entry) {
    list.append(list.empty() ? std::string_view{} : separator).append(entry);
}

}  // namespace

uint64_t AllocationPolicy::round_to_division(uint64_t size) const {
    const int log2 = std::bit_width(std::max<uint64_t>(size, 1)) - 1;
    const auto interval = static_cast<size_t>(std::clamp(log2 - 20, 0, static_cast<int>(Divisions{}.size()) - 1));
    const uint64_t steps = roundup_power2_divisions[interval];
    if (steps <= 1 || size <= steps || std::has_single_bit(size))
        return size;
    const uint64_t step = (uint64_t{1} << log2) / steps;
    return step == 0 ? size : (size + step - 1) / step * step;
}

std::string_view name_of(AllocationPolicy::Backend backend) {
    switch (backend) {
    case AllocationPolicy::Backend::bufalloc: return "bufalloc";
    case AllocationPolicy::Backend::caching: return "caching";
    case AllocationPolicy::Backend::bucket: return "bucket";
    }
    return "";
}

ParsedPolicy parse_policy(std::string_view text, std::string_view variable, const AllocationPolicy& base) {
    ParsedPolicy parsed{base, {}};
    std::string unknown, malformed;
    for_each_part(text, [&](std::string_view part, std::string_view name, std::string_view value) {
        const Key* const key = find_key(name);
        if (!key)
            append(unknown, ", ", "\"" + std::string(part) + "\"");
        else if (!key->parse(parsed.policy, value))
            append(malformed, "; ", "\"" + std::string(part) + "\" (expected: " + std::string(key->values) + ")");
    });
    if (!unknown.empty()) {
        std::string known;
        for (const Key& key : keys)
            append(known, ", ", key.name);
        parsed.warning = "unknown: " + unknown + "; the keys are " + known;
    }
    if (!malformed.empty())
        append(parsed.warning, "; ", "malformed: " + malformed);
    if (!parsed.warning.empty())
        parsed.warning.insert(0, std::string(variable) + ": ");
    return parsed;
}

SplitParameters split_parameters(std::string_view parameters) {
    SplitParameters split;
    for_each_part(parameters, [&](std::string_view part, std::string_view name, std::string_view) {
        append(find_key(name) ? split.policy : split.driver, ",", part);
    });
    return split;
}

}  // namespace polder::memory
