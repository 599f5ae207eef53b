// The gamma function of doubles; floats by doubles, vectors by elements.
#include "common.h"

// Lanczos' approximation with the 13 coefficients of Boost.Math's lanczos13m53 (g = 6.0246...), and the
// reflection formula for negative arguments.
__constant double lanczos_numerator[13] = {
    23531376880.410759688572007674451636754734846804940, 42919803642.649098768957899047001988850926355848959,
    35711959237.355668049440185451547166705960488635843, 17921034426.037209699919755754458931112671403265390,
    6039542586.3520280050642916443072979210699388420708, 1439720407.3117216736632230727949123939715485786372,
    248874557.86205415651146038641322942321632125127801, 31426415.585400194380614231628318205362874684987640,
    2876370.6289353724412254090516208496135991145378768, 186056.26539522349504029498971604569928220784236328,
    8071.6720023658162106380029022722506138218516325024, 210.82427775157934587250973392071336271166969580291,
    2.5066282746310002701649081771338373386264310793408};
__constant double lanczos_denominator[13] = {0,       39916800, 120543840, 150917976, 105258076, 45995730, 13339535,
                                             2637558, 357423,   32670,     1925,      66,        1};

// The quotient of the polynomials; for large x in powers of 1 / x, which do not overflow.
static inline double lanczos_sum(double x) {
    double numerator = 0, denominator = 0;
    if (x < 8.0) {
        for (int i = 12; i >= 0; --i) {
            numerator = fma(numerator, x, lanczos_numerator[i]);
            denominator = fma(denominator, x, lanczos_denominator[i]);
        }
    } else {
        double inverse = 1.0 / x;
        for (int i = 0; i <= 12; ++i) {
            numerator = fma(numerator, inverse, lanczos_numerator[i]);
            denominator = fma(denominator, inverse, lanczos_denominator[i]);
        }
    }
    return numerator / denominator;
}

// For 0 < x < 180: sum(x) * (x + g - 1/2)^(x - 1/2) / e^(x + g - 1/2), the power in two halves.
static inline double gamma_of_positive(double x) {
    const double g_minus_half = 5.524680040776729583740234375;
    double base = x + g_minus_half;
    // What the sum has lost, to first order: d/dy (y^(x-1/2) e^-y) / it = (x - 1/2) / y - 1.
    double lost = x > g_minus_half ? g_minus_half - (base - x) : x - (base - g_minus_half);
    double root = pow(base, 0.5 * x - 0.25);
    double result = lanczos_sum(x) * exp(-base) * root * root;
    return isinf(result) ? result : fma(result, lost * ((x - 0.5) / base - 1.0), result);
}

BUILTIN double tgamma(double x) {
    if (isnan(x) || x == INFINITY)
        return x;
    if (x == 0.0)
        return copysign((double)INFINITY, x);
    if (x < 0.0 && x == floor(x))
        return NAN;
    if (x > 172.0)
        return INFINITY;
    if (fabs(x) < 0x1p-54)
        return 1.0 / x;
    if (x > 0.0)
        return gamma_of_positive(x);
    if (x < -184.0)
        return fmod(floor(x), 2.0) == 0.0 ? 0.0 : -0.0;
    // pi / (sin(pi x) gamma(1 - x)) with gamma(1 - x) = -x gamma(-x), in an order that does not overflow.
    double y = -x;
    double sine = sinpi(x) * y;
    if (y < 140.0)
        return M_PI / (sine * gamma_of_positive(y));
    double base = y + 5.524680040776729583740234375;
    double lost = 5.524680040776729583740234375 - (base - y);
    double root = pow(base, 0.5 * y - 0.25);
    double result = M_PI / (sine * lanczos_sum(y) * exp(-base) * root) / root;
    return fma(result, -lost * ((y - 0.5) / base - 1.0), result);
}
BUILTIN float tgamma(float x) { return (float)tgamma((double)x); }

// Vectors, element by element.
#define EACH2(CALL) CALL(s0), CALL(s1)
#define EACH3(CALL) EACH2(CALL), CALL(s2)
#define EACH4(CALL) EACH3(CALL), CALL(s3)
#define EACH8(CALL) EACH4(CALL), CALL(s4), CALL(s5), CALL(s6), CALL(s7)
#define EACH16(CALL)                                                                                   \
    EACH8(CALL), CALL(s8), CALL(s9), CALL(sa), CALL(sb), CALL(sc), CALL(sd), CALL(se), CALL(sf)

#define CALL_TGAMMA(E) tgamma(x.E)
#define DEFINE_VECTOR(T, N)                                                                            \
    BUILTIN T##N tgamma(T##N x) { return (T##N)(EACH##N(CALL_TGAMMA)); }
#define DEFINE_ALL_VECTORS(T)                                                                          \
    DEFINE_VECTOR(T, 2) DEFINE_VECTOR(T, 3) DEFINE_VECTOR(T, 4) DEFINE_VECTOR(T, 8) DEFINE_VECTOR(T, 16)
DEFINE_ALL_VECTORS(float)
DEFINE_ALL_VECTORS(double)
