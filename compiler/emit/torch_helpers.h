// SPDX-License-Identifier: Apache-2.0
// Python functions that emitted torch source may call, for what torch leaves undefined or does otherwise. Each is
// printed only where it is used.
#pragma once
#include <array>
#include <string_view>

namespace elsewise {

struct TorchHelper {
  std::string_view name;
  std::string_view needs; // other helpers, separated by blanks
  std::string_view text;
};

inline constexpr std::array torch_helpers = {
    TorchHelper{"_axis", "", R"(def _axis(shape, d, device):
    """Positions along one axis, to broadcast over `shape`."""
    behind = len(shape) - 1 - d % len(shape)
    return torch.arange(shape[d], device=device).reshape(-1, *[1] * behind)
)"},
    TorchHelper{"_border", "_axis", R"(def _border(shape, dims, device):
    """How far the nearest face of the domain is, over some of its axes or all."""
    nearest = None
    for d in range(len(shape)) if dims is None else dims:
        p = _axis(shape, d, device)
        p = torch.minimum(p, shape[d] - 1 - p)
        nearest = p if nearest is None else torch.minimum(nearest, p)
    return nearest
)"},
    TorchHelper{"_border_at", "", R"(def _border_at(shape, dims, at):
    """The same at one position."""
    dims = range(len(shape)) if dims is None else dims
    return min(min(at[d], shape[d] - 1 - at[d]) for d in dims)
)"},
    TorchHelper{"_positions", "", R"(def _positions(shape):
    """Each position: its number, and where it is along each axis."""
    return enumerate(itertools.product(*map(range, shape)))
)"},
    TorchHelper{"_flat_in", "_axis", R"(def _flat_in(shape, device, domain, offset):
    """Row-major positions in the domain of each element of a window."""
    flat = torch.zeros((), dtype=torch.int64, device=device)
    for d in range(len(shape)):
        flat = flat * domain[d] + (_axis(shape, d, device) + offset[d])
    return flat.expand(shape)
)"},
    TorchHelper{"_border_in", "_axis", R"(def _border_in(shape, dims, device, domain, offset):
    """How far the nearest face of the domain is, over some of its axes or all, for each element of a window."""
    nearest = None
    for d in range(len(shape)) if dims is None else dims:
        p = _axis(shape, d, device) + offset[d]
        p = torch.minimum(p, domain[d] - 1 - p)
        nearest = p if nearest is None else torch.minimum(nearest, p)
    return nearest
)"},
    TorchHelper{"_positions_in", "", R"(def _positions_in(shape, domain, offset):
    """Each position of a window: its row-major number in the domain, and where it is along each axis."""
    for at in itertools.product(*[range(o, o + s) for o, s in zip(offset, shape)]):
        flat = 0
        for p, length in zip(at, domain):
            flat = flat * length + p
        yield flat, at
)"},
    TorchHelper{"_length_in", "", R"(def _length_in(shape, d, domain):
    """How long the whole of a window's tensor is along an axis."""
    return shape[d] if shape[d] == 1 else domain[d % len(shape) - len(shape)]
)"},
    TorchHelper{"_read", "_axis _index", R"(def _read(table, shape, reached, before, behind=None):
    """The elements at indices, one an axis; between `before` and `behind` an axis is read at its own place. They have to
    be in bounds where everything in `reached` holds, and elsewhere nothing is said of the element."""
    here = torch.ones((), dtype=torch.bool, device=table.device)
    for condition in reached:
        here = here & condition
    here = here.expand(shape)
    own = [] if behind is None else range(len(before), table.dim() - len(behind))
    own = [_axis(shape, len(shape) - table.dim() + d, table.device) if table.shape[d] != 1 else 0 for d in own]
    safe = []
    for d, at in enumerate([*before, *own, *(behind or [])]):
        at = at if torch.is_tensor(at) else torch.tensor(_index(at), device=table.device)
        if (((at < 0) | (at >= table.shape[d])) & here).any():
            raise IndexError(f"an index of axis {d} is out of bounds of a tensor of shape {tuple(table.shape)}")
        safe.append(at.clamp(0, max(table.shape[d] - 1, 0)))
    if 0 in table.shape:
        return torch.zeros(shape, dtype=table.dtype, device=table.device)
    return table[tuple(safe)]
)"},
    TorchHelper{"_ranked", "", R"(def _ranked(shape, named, more):
    """A shape that the rule's axes fit."""
    if len(shape) < named or (len(shape) > named and not more):
        raise ValueError(f"the rule names {named} axes, the domain has {len(shape)}: shape {shape}")
    return shape
)"},
    TorchHelper{"_real", "", R"(def _real(value):
    """A number without a tensor, as the double that it is."""
    return torch.tensor(value, dtype=torch.float64)
)"},
    TorchHelper{"_index", "", R"(def _index(value):
    """An exact integer, brought into the 64 bits that positions have: comparisons come out the same."""
    least, greatest = -(2**63), 2**63 - 1
    return least if value < least else greatest if value > greatest else value
)"},
    TorchHelper{"_small", "", R"(def _small(*values):
    """Numbers with which arithmetic on positions stays within 64 bits."""
    return all(-(2**31) < value < 2**31 for value in values)
)"},
    TorchHelper{"_whole", "", R"(def _whole(value):
    """The whole part of a number without a tensor; NaN is 0."""
    if value != value:
        return 0
    return -(2**63) if value < -(2**63) else 2**63 - 1 if value >= 2**63 else math.trunc(value)
)"},
    TorchHelper{"_to_half", "", R"(def _to_half(value, dtype):
    """Doubles to a half in one rounding: by way of a float whose last bit says that something was cut off."""
    single = value.to(torch.float32)
    back, bits = single.to(torch.float64), single.view(torch.int32)
    bits = torch.where(back.abs() > value.abs(), bits - 1, bits)
    bits = torch.where((back == value) | value.isnan(), bits, bits | 1)
    return bits.view(torch.float32).to(dtype)
)"},
    TorchHelper{"_to_int", "", R"(def _to_int(value, dtype):
    """Floats to integers: truncates, saturates, NaN is 0."""
    least, greatest = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    value = torch.where(value.isnan(), 0.0, value.to(torch.float64).trunc())
    high, low = value >= greatest + 1.0, value <= least
    fits = torch.where(high | low, 0.0, value).to(dtype)
    return torch.where(high, greatest, torch.where(low, least, fits))
)"},
    TorchHelper{"_scalar", "_to_int _to_half", R"(def _scalar(value, dtype, device):
    """A number as a 0-d tensor: floats truncate and saturate, integers wrap, NaN is 0 in integers."""
    if value is True or value is False or dtype == torch.bool:
        return torch.tensor(value != 0, device=device).to(dtype)
    if dtype.is_floating_point:
        if value.__class__ is int and -(2**63) <= value < 2**63:
            return torch.tensor(value, dtype=torch.int64).to(dtype).to(device)
        value = torch.tensor(value, dtype=torch.float64)
        half = dtype in (torch.float16, torch.bfloat16)
        return (_to_half(value, dtype) if half else value.to(dtype)).to(device)
    if value.__class__ is int:
        least, greatest = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        return torch.tensor((value - least) % (greatest - least + 1) + least, dtype=dtype, device=device)
    return _to_int(torch.tensor(value, dtype=torch.float64), dtype).to(device)
)"},
    TorchHelper{"_rounded", "_scalar _to_int _to_half", R"(def _rounded(value, dtype):
    """A number as a half dtype holds it: what is compared with half data is rounded first."""
    return _scalar(value, dtype, "cpu").item()
)"},
    TorchHelper{"_floordiv", "", R"(def _floordiv(a, b):
    """Integers: the quotient rounded down; x // 0 is 0, and the least integer by -1 wraps."""
    if not torch.is_tensor(a) and not torch.is_tensor(b):
        return a // b if b else 0
    a = a if torch.is_tensor(a) else torch.full((), a, dtype=b.dtype, device=b.device)
    if not torch.is_tensor(b):
        return torch.zeros_like(a) if b == 0 else -a if b == -1 else a // b
    minus = (b == -1) & (b < 0)  # 255 of uint8 equals -1 to torch
    plain = (b != 0) & ~minus
    return torch.where(plain, a // torch.where(plain, b, 1), torch.where(minus, -a, 0))
)"},
    TorchHelper{"_mod", "", R"(def _mod(a, b):
    """Integers: the rest, with the divisor's sign; x % 0 is 0."""
    if not torch.is_tensor(a) and not torch.is_tensor(b):
        return a % b if b else 0
    if not torch.is_tensor(b):
        return torch.zeros_like(a) if b in (0, -1) else a % b
    a = a if torch.is_tensor(a) else torch.full((), a, dtype=b.dtype, device=b.device)
    plain = (b != 0) & ((b != -1) | (b > 0))  # 255 of uint8 equals -1 to torch
    return torch.where(plain, a % torch.where(plain, b, 1), 0)
)"},
    TorchHelper{"_unsigned", "", R"(def _unsigned(op, a, b, dtype):
    """`a op b` of uint16, uint32 or uint64, for which torch has few operations: on their bits as int64."""
    device = (a if torch.is_tensor(a) else b).device
    low = -(2**63)  # with which bits are in the order of the numbers they stand for
    a, b = (
        v.to(torch.int64) if torch.is_tensor(v) else torch.tensor((v - low) % 2**64 + low, device=device)
        for v in (a, b)
    )
    less, same = (a ^ low) < (b ^ low), a == b
    if op in ("<", "<=", ">", ">=", "==", "!="):
        return {"<": less, "<=": less | same, ">": ~(less | same), ">=": ~less, "==": same, "!=": ~same}[op]
    if op in ("<<", ">>"):
        fits, by = (b >= 0) & (b < 8 * dtype.itemsize), b & 63
        moved = a << by if op == "<<" else (a >> by) & ~(-1 << (63 - by) << 1)
        result = torch.where(fits, moved, 0)
    elif op in ("//", "%"):
        divisor = torch.where(b == 0, 1, b)
        quotient = ((a >> 1) & (2**63 - 1)) // torch.where(divisor < 0, 1, divisor) * 2
        quotient = torch.where(divisor < 0, 0, quotient)
        rest = a - quotient * divisor
        more = (rest ^ low) >= (divisor ^ low)
        result = quotient + more.to(torch.int64) if op == "//" else torch.where(more, rest - divisor, rest)
        result = torch.where(b == 0, 0, result)
    elif op == "**":
        result = torch.ones_like(a + b)
        for k in range(64):
            result = torch.where((b >> k) & 1 == 1, result * a, result)
            a = a * a
    elif op in ("least", "greatest"):
        result = torch.where(less if op == "least" else ~less, a, b)
    else:
        result = {"+": a + b, "-": a - b, "*": a * b, "&": a & b, "|": a | b, "^": a ^ b}[op]
    return result.to(dtype)
)"},
    TorchHelper{"_compare_uint64", "_unsigned", R"(def _compare_uint64(op, a, b):
    """`a op b` of a uint64 and an exact integer, which may be negative or greater than any."""
    if not torch.is_tensor(b) and not 0 <= b < 2**64:
        return torch.full_like(a, op in ((">", ">=", "!=") if b < 0 else ("<", "<=", "!=")), dtype=torch.bool)
    within = _unsigned(op, a, b, torch.uint64)
    if not torch.is_tensor(b):
        return within
    return torch.where(b < 0, torch.full_like(b, op in (">", ">=", "!="), dtype=torch.bool), within)
)"},
    TorchHelper{"_shift_left", "", R"(def _shift_left(value, by):
    """Of an exact integer; by less than 0 gives 0."""
    return value << by if 0 <= by < 128 else 0
)"},
    TorchHelper{"_shift_right", "", R"(def _shift_right(value, by):
    """Of an exact integer; by less than 0 leaves the sign."""
    return value >> (by if 0 <= by < 128 else 128)
)"},
    TorchHelper{"_power", "", R"(def _power(a, b):
    """An exact integer power; a negative exponent truncates."""
    if b >= 0:
        return a**b
    return a ** (-b % 2) if a in (1, -1) else 0
)"},
    TorchHelper{"_root", "", R"(def _root(value):
    """The nearest double to a square root; torch's own may be a unit off on the CPU."""
    root = torch.sqrt(value)
    scaled = root * 134217729.0  # root * root without rounding, by Dekker's splitting
    high = scaled - (scaled - root)
    low, square = root - high, root * root
    rest = (value - square) - (((high * high - square) + 2 * high * low) + low * low)
    above = torch.nextafter(root, torch.full_like(root, torch.inf))
    below = torch.nextafter(root, torch.zeros_like(root))
    normal = (value > 1e-280) & (value < torch.inf)
    nearest = torch.where(rest > root * (above - root), above, torch.where(-rest > root * (root - below), below, root))
    return torch.where(normal, nearest, root)
)"},
    TorchHelper{"_ramp", "_unsigned _scalar _to_int _to_half", R"(def _ramp(e, a, b, dtype):
    """1 where e >= b, else 0 where e <= a, else (e - a) / (b - a); whole numbers are compared and subtracted exactly."""
    given = (e, a, b)
    tensor = any(torch.is_tensor(v) for v in given)
    device = next((v.device for v in given if torch.is_tensor(v)), None)
    real = [v.is_floating_point() if torch.is_tensor(v) else v.__class__ is float for v in given]
    free = not any(r and torch.is_tensor(v) for r, v in zip(real, given))
    work = torch.int64 if not any(real) else torch.float64 if free else dtype
    placed = any(torch.is_tensor(v) and v.dtype == torch.int64 and v.dim() for v in given)
    if not any(real) and not placed and any(torch.is_tensor(v) and v.dtype == torch.uint64 for v in given):
        work = torch.uint64  # beyond int64
        e, a, b = (v.to(work) if torch.is_tensor(v) else _scalar(v, work, device) for v in given)
        between = _unsigned("-", e, a, work).to(dtype) / _unsigned("-", b, a, work).to(dtype)
        result = torch.where(_unsigned("<=", e, a, work), 0.0, between)
        return torch.where(_unsigned(">=", e, b, work), 1.0, result).to(dtype)
    e, a, b = (v.to(work) if torch.is_tensor(v) else torch.tensor(v, dtype=work, device=device) for v in given)
    dtype = dtype if tensor else torch.float64
    exact = torch.uint64 if work == torch.int64 else work  # where it is taken, no difference is below 0
    between = (e - a).to(exact).to(dtype) / (b - a).to(exact).to(dtype)
    result = torch.where(e >= b, 1.0, torch.where(e <= a, 0.0, between)).to(dtype)
    return result if tensor else result.item()
)"},
    TorchHelper{"_bit_count", "", R"(def _bit_count(value):
    """How many bits are set; a number has 64."""
    if not torch.is_tensor(value):
        return bin(value & (2**64 - 1)).count("1")
    bits, count = value.to(torch.int64), 0
    for k in range(8 * value.element_size()):
        count = count + ((bits >> k) & 1)
    return count.to(value.dtype)
)"},
    TorchHelper{"_noise", "", R"(def _noise(position, seed, stream):
    """Philox 4x32-10: of what the counter (position >> 2, stream) gives under the seed, the word `position & 3`."""
    mask = 2**32 - 1
    a, b, c, d = position >> 2 & mask, position >> 34 & mask, stream & mask, stream >> 32 & mask
    k, m = seed & mask, seed >> 32 & mask
    for _ in range(10):
        x, y = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (y >> 32 & mask) ^ b ^ k, y & mask, (x >> 32 & mask) ^ d ^ m, x & mask
        k, m = k + 0x9E3779B9 & mask, m + 0xBB67AE85 & mask
    odd = position & 1 != 0
    return torch.where(position & 2 != 0, torch.where(odd, d, c), torch.where(odd, b, a))
)"},
    TorchHelper{"_uniform", "", R"(def _uniform(word):
    """The upper 24 bits of a word as a number from 0 up to 1."""
    return (word >> 8).float() * 2.0**-24
)"},
    TorchHelper{"_normal", "", R"(def _normal(word):
    """The point below which (word + 0.5) * 2^-32 of a normal distribution lies: in floats, step by step."""
    rest = torch.where(word < 2**31, word, 2**32 - 1 - word)  # counted from the nearer end
    off = ((2**31 - 1 - rest).float() + 0.5) * 2.0**-32
    r = 0.180625 - off * off
    middle = ((59.109375 * r + 159.29114) * r + 50.434273) * r + 3.3871326
    under_middle = ((67.18756 * r + 78.75776) * r + 17.89517) * r + 1.0
    bits = (rest.float() + 0.5).view(torch.int32)
    m = (bits & 0x7FFFFF | 0x3F800000).view(torch.float32)
    s = (m - 1.4142135) / (m + 1.4142135)
    z = s * s
    log_m = s * (((0.2857143 * z + 0.4) * z + 0.6666667) * z + 2.0) + 0.3465736
    outside = (159 - (bits >> 23)).float() * 0.6931472 - log_m
    t = outside.double().sqrt().float() - 1.6
    tail = ((0.17023821 * t + 1.3067285) * t + 2.7568154) * t + 1.4234372
    under_tail = (0.12021133 * t + 0.73700166) * t + 1.0
    x = torch.where(off <= 0.425, off * middle / under_middle, tail / under_tail)
    return torch.where(word < 2**31, -x, x)
)"},
    TorchHelper{"_least", "", R"(def _least(a, b):
    """Of two exact integers."""
    return b if b < a else a
)"},
    TorchHelper{"_greatest", "", R"(def _greatest(a, b):
    """Of two exact integers."""
    return b if b > a else a
)"},
    TorchHelper{"_magnitude", "", R"(def _magnitude(a):
    """Of an exact integer."""
    return -a if a < 0 else a
)"},
};

} // namespace elsewise
