//! Tiles: what is read is what is there, and what is written is that and no more.

use pulp::{Simd, WithSimd};

use crate::Scalar;
use crate::lanes::pack::{Shape, pack, unpack};
use crate::matrix::layout::Layout;
use crate::simd::arch::Arch as Level;
use crate::simd::lane::Lanes;
use crate::simd::lane_real::LaneReal;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, MAX_LANES};
use crate::testing::levels::random;

for_each_scalar!(there_and_back);

/// At each level, and with registers as wide as AVX-512's on any processor.
fn there_and_back<T: Scalar>() {
    for level in Level::available() {
        each_shape::<T>(level.lanes::<T>(), |trip| level.dispatch(trip));
    }
    let wide = pulp::Scalar512b;
    let lanes = wide.vectorize(Lanes(std::marker::PhantomData::<T>));
    each_shape::<T>(lanes, |trip| wide.vectorize(trip));
}

/// Matrices with fewer numbers than a register, with as many and with more; groups of any size.
fn each_shape<T: Scalar>(lanes: usize, run: impl Fn(Trip<T>)) {
    for (m, n) in (0..=9).flat_map(|m| [0, 1, 2, 3, 4, 5, 8, 16].map(|n| (m, n))) {
        for order in [Layout::Rows, Layout::Columns] {
            for count in 1..=lanes {
                let shape = Shape { m, n, order };
                run(Trip { shape, count, scalar: std::marker::PhantomData });
            }
        }
    }
}

struct Trip<T> {
    shape: Shape,
    count: usize,
    scalar: std::marker::PhantomData<T>,
}

impl<T: Scalar> WithSimd for Trip<T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { shape, count, .. } = self;
        let Shape { m, n, order } = shape;
        let lanes = T::Real::lanes::<S>();
        let what = format!("{count} of {m}x{n} {order:?}, {lanes} lanes");
        let a = random::<T>(m * n * count);
        let mut tile = Tile::<T::Real>::new::<T>(m * n, lanes);
        let registers = tile.registers::<S>();
        pack(simd, &a, count, shape, registers);
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let mut found = [T::ZERO; MAX_LANES];
            T::Lane::<S>::load(simd, registers, j * m + i).write(&mut found);
            let at = if order == Layout::Rows { i * n + j } else { j * m + i };
            for (lane, found) in found[..lanes].iter().enumerate() {
                assert_eq!(*found, a[lane.min(count - 1) * m * n + at], "{what}: lane {lane}");
            }
        }
        let mut back = vec![T::ZERO; a.len()];
        unpack(simd, registers, count, shape, &mut back);
        assert_eq!(back, a, "{what}");
    }
}
