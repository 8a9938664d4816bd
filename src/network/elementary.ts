/**
 * Elementary functions that give the same bits in every JavaScript engine and on every processor. `Math.exp`, `Math.pow`,
 * `Math.cos` and the like need not: the language leaves their last bits open. So these use only what it defines: addition,
 * multiplication, division, rounding to integers.
 */

/** ln(2) in two parts. The first has 32 bits, so that its products with small integers are exact. */
const LN2_HIGH = 2977044471 / 2 ** 32;
const LN2_LOW = 1.9082149292705877e-10;

/** e^x, to the last bit or two. Not for numbers beyond ±700. */
export function preciseExp(x: number): number {
  const n = Math.round(x / Math.LN2);
  const r = x - n * LN2_HIGH - n * LN2_LOW;
  let sum = 1;
  for (let i = 18; i > 0; i--) sum = 1 + (r / i) * sum;
  return sum * powerOfTwo(n);
}

/** 2^n, which repeated multiplication gives exactly. */
function powerOfTwo(n: number): number {
  let power = 1;
  for (let i = 0; i < Math.abs(n); i++) power *= n < 0 ? 0.5 : 2;
  return power;
}

/** ln(x) of a positive number, to the last bits. */
export function ln(x: number): number {
  let n = 0;
  let m = x;
  for (; m > Math.SQRT2; m /= 2) n++;
  for (; m < Math.SQRT1_2; m *= 2) n--;
  // ln((1 + s) / (1 - s)) = 2 (s + s^3 / 3 + s^5 / 5 ...), with s at most .1716.
  const s = (m - 1) / (m + 1);
  let sum = 0;
  for (let i = 23; i > 0; i -= 2) sum = 1 / i + s * s * sum;
  return n * LN2_HIGH + (2 * s * sum + n * LN2_LOW);
}

/** pi / 2 in three parts, the first two of at most 33 bits. */
const HALF_PI = [6746518852 / 2 ** 32, 2242054355 / 2 ** 65, 2.0222662487959506e-21] as const;

/** Cosine and sine of an angle in radians, which may be up to a million, to the last bits. */
export function cosAndSin(x: number): [cos: number, sin: number] {
  const quarters = Math.round(x / (Math.PI / 2));
  const r = x - quarters * HALF_PI[0] - quarters * HALF_PI[1] - quarters * HALF_PI[2];
  let cos = 1;
  for (let i = 18; i > 0; i -= 2) cos = 1 - ((r * r) / (i * (i - 1))) * cos;
  let sin = 1;
  for (let i = 19; i > 1; i -= 2) sin = 1 - ((r * r) / (i * (i - 1))) * sin;
  sin *= r;
  switch (((quarters % 4) + 4) % 4) {
    case 0:
      return [cos, sin];
    case 1:
      return [-sin, cos];
    case 2:
      return [-cos, -sin];
    default:
      return [sin, -cos];
  }
}
