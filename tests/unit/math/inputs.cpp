#include "inputs.h"

#include <climits>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace polder::math {
namespace {

template <class T>
Buffer<T> special_values() {
    using Limits = std::numeric_limits<T>;
    const T one = 1;
    Buffer<T> positive = {0,
                          Limits::denorm_min(),
                          Limits::min() - Limits::denorm_min(),
                          Limits::min(),
                          T(0.25),
                          T(0.5),
                          std::nextafter(one, T(0)),
                          one,
                          std::nextafter(one, T(2)),
                          T(1.5),
                          2,
                          T(2.5),
                          3,
                          T(3.5),
                          4,
                          5,
                          T(10),
                          T(22),
                          T(88.7),
                          T(127.5),
                          T(709.8),
                          T(1023),
                          T(8388608.5),
                          T(4503599627370497.5),
                          T(1e10),
                          Limits::max(),
                          Limits::infinity(),
                          Limits::quiet_NaN()};
    Buffer<T> values;
    for (const T value : positive) {
        values.push_back(value);
        values.push_back(-value);
    }
    return values;
}

const int special_integers[] = {0,   1,    -1,   2,     -2,    3,      -3,      7,       64,         -64,
                                126, -127, 1023, -1074, 32768, -32767, INT_MAX, INT_MIN, INT_MAX - 1};

template <class T>
class Source {
public:
    explicit Source(Domain domain) : domain_(domain) {}

    // A first, second and third argument and an integer that suit each other.
    void draw(T& a, T& b, T& c, int& n) {
        const int choice = static_cast<int>(random_() % 8);
        a = choice < 2 ? bits() : suited();
        b = choice < 2 ? bits() : suited();
        c = choice < 2 ? bits() : suited();
        n = choice < 2 ? static_cast<int>(random_()) : static_cast<int>(random_() % 64) - 32;
        if (choice >= 2)
            relate(a, b, c, n);
    }

private:
    T bits() {
        T value;
        const uint64_t pattern = random_();
        std::memcpy(&value, &pattern, sizeof value);
        return value;
    }
    T uniform(double low, double high) {
        return static_cast<T>(std::uniform_real_distribution<double>(low, high)(random_));
    }
    T sign() { return random_() % 2 == 0 ? T(-1) : T(1); }
    T magnitudes(double low_log2, double high_log2) { return sign() * std::exp2(uniform(low_log2, high_log2)); }

    T suited() {
        constexpr double range = sizeof(T) == 4 ? 105 : 760;
        switch (domain_) {
        case Domain::unit:
            return random_() % 4 == 0   ? sign() * (1 - std::exp2(uniform(-24, 0)))
                   : random_() % 2 == 0 ? uniform(-1, 1)
                                        : magnitudes(-30, 0);
        case Domain::circle: return circle();
        case Domain::exponent:
            return random_() % 3 == 0   ? magnitudes(-30, 4)
                   : random_() % 2 == 0 ? uniform(-6, 6)
                                        : uniform(-range, range);
        case Domain::positive: return random_() % 2 == 0 ? std::fabs(magnitudes(-60, 60)) : uniform(0, 4);
        case Domain::around_one: return random_() % 3 == 0 ? 1 + magnitudes(-24, -1) : std::fabs(magnitudes(-100, 100));
        case Domain::integers_and_halves: return halves();
        case Domain::moderate: return random_() % 2 == 0 ? uniform(0, 16) : uniform(-64, 64);
        default: return random_() % 2 == 0 ? magnitudes(-20, 20) : uniform(-4, 4);
        }
    }

    T circle() {
        switch (random_() % 4) {
        case 0: return uniform(-7, 7);
        case 1: return magnitudes(-20, 30);
        // Next to multiples of pi / 2, where the result loses all its bits.
        case 2: return static_cast<T>(static_cast<double>(static_cast<int>(random_() % 20001) - 10000) * (M_PI / 2));
        default: return magnitudes(30, sizeof(T) == 4 ? 127 : 1000);
        }
    }

    T halves() {
        const T whole = static_cast<T>(static_cast<int>(random_() % 4096) - 2048);
        switch (random_() % 4) {
        case 0: return whole + T(0.5);
        case 1: return whole;
        case 2: return std::nextafter(whole + T(0.5), sign() * 10000);
        default: return magnitudes(-10, 54);
        }
    }

    // Makes the second argument one that keeps the result in range, or close to the first.
    void relate(T& a, T& b, T& c, int& n) {
        if (domain_ == Domain::power) {
            const T base = random_() % 3 == 0 ? 1 + magnitudes(-20, -2) : std::fabs(magnitudes(-20, 20));
            const T target = uniform(sizeof(T) == 4 ? -149 : -1074, sizeof(T) == 4 ? 128 : 1024);
            b = base == 1 ? T(3) : target / std::log2(base);
            if (random_() % 2 == 0)
                b = std::rint(b);
            n = std::fabs(b) < 2e9 ? static_cast<int>(b) : 7;
            a = random_() % 4 == 0 ? -base : base;
        } else if (domain_ == Domain::remainder && random_() % 2 == 0) {
            b = a / static_cast<T>(static_cast<int>(random_() % 1000) * 0.5 + 0.5);
        } else if (domain_ == Domain::scale) {
            a = random_() % 2 == 0 ? bits() : a;
            n = static_cast<int>(random_() % 2400) - 1200;
        } else if (random_() % 4 == 0) {
            c = -a * b;
        }
    }

    Domain domain_;
    std::mt19937_64 random_{20220815};
};

} // namespace

template <class T>
Inputs<T> make_inputs(Domain domain, size_t random_count) {
    Inputs<T> inputs;
    const auto add = [&inputs](T a, T b, T c, int n) {
        inputs.a.push_back(a);
        inputs.b.push_back(b);
        inputs.c.push_back(c);
        inputs.n.push_back(n);
    };
    const Buffer<T> specials = special_values<T>();
    size_t next = 0;
    for (const T a : specials)
        for (const T b : specials) {
            add(a, b, specials[next % specials.size()], special_integers[next % std::size(special_integers)]);
            ++next;
        }
    Source<T> source{domain};
    for (size_t i = 0; i < random_count; ++i) {
        T a, b, c;
        int n;
        source.draw(a, b, c, n);
        add(a, b, c, n);
    }
    return inputs;
}

template Inputs<float> make_inputs(Domain, size_t);
template Inputs<double> make_inputs(Domain, size_t);

} // namespace polder::math
