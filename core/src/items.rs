//! The operands of a batch: flat slices, cut into one item per matrix.

use std::sync::{Mutex, PoisonError};

use crate::batch::Batched;
use crate::error::{Error, product};
use crate::tasks::run_each;
use crate::threads::Threads;

/// An operand that may share memory with its result.
#[derive(Debug)]
pub struct InOut<'a, T> {
    /// The input, or `None` where it already lies in `dst`.
    pub src: Option<&'a [T]>,
    /// The result.
    pub dst: &'a mut [T],
}

/// One read-only item per matrix.
#[derive(Debug)]
pub struct Items<'a, T> {
    data: &'a [T],
    length: usize,
}

/// One result per matrix.
#[derive(Debug)]
pub struct ItemsMut<'a, T> {
    data: &'a mut [T],
    length: usize,
}

/// One result per matrix that starts out as the operand's value.
///
/// Where the two do not share memory, an item is copied just before its kernel runs, so that the
/// kernel finds it in the cache; an item of which all threads are to work they copy together.
#[derive(Debug)]
pub struct ItemsInOut<'a, T> {
    src: Option<&'a [T]>,
    dst: &'a mut [T],
    length: usize,
}

/// [`ItemsInOut`], of which a kernel copies each item itself: piece by piece, as it comes to them.
#[derive(Debug)]
pub struct ItemsUncopied<'a, T>(ItemsInOut<'a, T>);

impl<'a, T> Items<'a, T> {
    /// Cuts `data` into `batch` items with the dimensions `dims`.
    ///
    /// # Errors
    /// Where `data` does not hold exactly that many elements; `operand` names it.
    pub fn new(
        operand: &'static str,
        batch: usize,
        dims: &[usize],
        data: &'a [T],
    ) -> Result<Self, Error> {
        let length = item_length(operand, batch, dims, data.len())?;
        Ok(Self { data, length })
    }

    /// All items, one after another.
    pub fn data(&self) -> &'a [T] {
        self.data
    }
}

impl<'a, T> ItemsMut<'a, T> {
    /// Cuts `data` into `batch` items with the dimensions `dims`.
    ///
    /// # Errors
    /// Where `data` does not hold exactly that many elements; `operand` names it.
    pub fn new(
        operand: &'static str,
        batch: usize,
        dims: &[usize],
        data: &'a mut [T],
    ) -> Result<Self, Error> {
        let length = item_length(operand, batch, dims, data.len())?;
        Ok(Self { data, length })
    }

    /// All items, one after another.
    pub fn into_data(self) -> &'a mut [T] {
        self.data
    }
}

impl<'a, T> ItemsInOut<'a, T> {
    /// Cuts `data` into `batch` items with the dimensions `dims`.
    ///
    /// # Errors
    /// Where a slice of `data` does not hold exactly that many elements; `operand` names it.
    pub fn new(
        operand: &'static str,
        batch: usize,
        dims: &[usize],
        data: InOut<'a, T>,
    ) -> Result<Self, Error> {
        let length = item_length(operand, batch, dims, data.dst.len())?;
        if let Some(src) = data.src {
            item_length(operand, batch, dims, src.len())?;
        }
        Ok(Self { src: data.src, dst: data.dst, length })
    }

    /// All items, one after another, for a caller that copies them itself.
    pub fn into_in_out(self) -> InOut<'a, T> {
        InOut { src: self.src, dst: self.dst }
    }

    /// The items, for a kernel that copies them itself.
    pub fn uncopied(self) -> ItemsUncopied<'a, T> {
        ItemsUncopied(self)
    }

    /// Removes and returns the first item, which is not copied yet.
    fn first(&mut self) -> InOut<'a, T> {
        let (dst, rest) = std::mem::take(&mut self.dst).split_at_mut(self.length);
        self.dst = rest;
        let (src, rest) = self.src.map(|src| src.split_at(self.length)).unzip();
        self.src = rest;
        InOut { src, dst }
    }
}

impl<'a, T: Copy + Send + Sync> InOut<'a, T> {
    /// The result, which holds the operand's value.
    pub fn copied(self) -> &'a mut [T] {
        if let Some(src) = self.src {
            self.dst.copy_from_slice(src);
        }
        self.dst
    }

    /// [`Self::copied`], by all threads if that is more than a moment's work.
    pub fn copied_by(self, threads: &dyn Threads) -> &'a mut [T] {
        /// The bytes of a piece, and how many pieces are worth waking a thread. On a Xeon 1 MB takes 37 us on one
        /// thread and 18 on two, 2 MB 146 and 54, 8 MB 600 and 300.
        const PIECE: usize = 256 << 10;
        const PIECES: usize = 8;

        let Some(src) = self.src.filter(|src| size_of_val(*src) >= PIECE * PIECES) else {
            return self.copied();
        };
        let piece = PIECE / size_of::<T>();
        let pieces: Vec<_> = self.dst.chunks_mut(piece).map(Mutex::new).collect();
        run_each(
            threads,
            pieces.len(),
            || (),
            |(), at| {
                let mut dst = pieces[at].lock().unwrap_or_else(PoisonError::into_inner);
                let src = &src[at * piece..][..dst.len()];
                dst.copy_from_slice(src);
            },
        );
        drop(pieces);
        self.dst
    }
}

fn item_length(
    operand: &'static str,
    batch: usize,
    dims: &[usize],
    got: usize,
) -> Result<usize, Error> {
    let length = product(operand, dims)?;
    let expected = product(operand, &[batch, length])?;
    if expected == got { Ok(length) } else { Err(Error::Length { operand, expected, got }) }
}

impl<'a, T: Sync> Batched for Items<'a, T> {
    type Item = &'a [T];

    fn writes(&self) -> bool {
        false
    }

    fn split_at(self, count: usize) -> (Self, Self) {
        let length = self.length;
        let (head, tail) = self.data.split_at(count * length);
        (Self { data: head, length }, Self { data: tail, length })
    }

    fn take(&mut self) -> &'a [T] {
        let (item, rest) = self.data.split_at(self.length);
        self.data = rest;
        item
    }

    #[inline(always)]
    fn memory(&self, count: usize, each: &mut impl FnMut(*const u8, usize)) {
        of(self.data, count * self.length, each);
    }
}

impl<'a, T: Send> Batched for ItemsMut<'a, T> {
    type Item = &'a mut [T];

    fn writes(&self) -> bool {
        !self.data.is_empty()
    }

    fn split_at(self, count: usize) -> (Self, Self) {
        let length = self.length;
        let (head, tail) = self.data.split_at_mut(count * length);
        (Self { data: head, length }, Self { data: tail, length })
    }

    fn take(&mut self) -> &'a mut [T] {
        let (item, rest) = std::mem::take(&mut self.data).split_at_mut(self.length);
        self.data = rest;
        item
    }

    #[inline(always)]
    fn memory(&self, count: usize, each: &mut impl FnMut(*const u8, usize)) {
        of(self.data, count * self.length, each);
    }
}

impl<'a, T: Copy + Send + Sync> Batched for ItemsInOut<'a, T> {
    type Item = &'a mut [T];

    fn writes(&self) -> bool {
        !self.dst.is_empty()
    }

    fn split_at(self, count: usize) -> (Self, Self) {
        let length = self.length;
        let (head, tail) = self.dst.split_at_mut(count * length);
        let (src_head, src_tail) = self.src.map(|src| src.split_at(count * length)).unzip();
        (Self { src: src_head, dst: head, length }, Self { src: src_tail, dst: tail, length })
    }

    fn take(&mut self) -> &'a mut [T] {
        self.first().copied()
    }

    fn take_by(&mut self, threads: &dyn Threads) -> &'a mut [T] {
        self.first().copied_by(threads)
    }

    #[inline(always)]
    fn memory(&self, count: usize, each: &mut impl FnMut(*const u8, usize)) {
        if let Some(src) = self.src {
            of(src, count * self.length, each);
        }
        of(self.dst, count * self.length, each);
    }
}

impl<'a, T: Copy + Send + Sync> Batched for ItemsUncopied<'a, T> {
    type Item = InOut<'a, T>;

    fn writes(&self) -> bool {
        self.0.writes()
    }

    fn split_at(self, count: usize) -> (Self, Self) {
        let (head, tail) = self.0.split_at(count);
        (Self(head), Self(tail))
    }

    fn take(&mut self) -> InOut<'a, T> {
        self.0.first()
    }

    #[inline(always)]
    fn memory(&self, count: usize, each: &mut impl FnMut(*const u8, usize)) {
        self.0.memory(count, each);
    }
}

/// Calls `each` with the first `count` elements of a slice.
#[inline(always)]
fn of<T>(data: &[T], count: usize, each: &mut impl FnMut(*const u8, usize)) {
    each(data.as_ptr().cast(), count.min(data.len()) * size_of::<T>());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::{Serial, Spawned};

    #[test]
    fn large_items_are_copied_whole_by_all() {
        for length in [0, 1, 1000, 400_003] {
            let src: Vec<u64> = (0..2 * length as u64).collect();
            for threads in [&Serial as &dyn Threads, &Spawned(3)] {
                let mut dst = vec![7; 2 * length];
                let data = InOut { src: Some(&src[..]), dst: &mut dst };
                let Ok(mut items) = ItemsInOut::new("a", 2, &[length], data) else {
                    unreachable!("the lengths are right")
                };
                for half in [&src[..length], &src[length..]] {
                    assert_eq!(items.take_by(threads), half);
                }
                assert_eq!(dst, src);
            }
        }
    }

    #[test]
    fn uncopied_items_are_left_to_their_kernel() {
        let (src, mut dst) = ([1, 2, 3, 4], [7; 4]);
        let data = InOut { src: Some(&src[..]), dst: &mut dst };
        let Ok(items) = ItemsInOut::new("a", 2, &[2], data) else {
            unreachable!("the lengths are right")
        };
        let mut items = items.uncopied();
        let InOut { src: first, dst } = items.take_by(&Spawned(3));
        assert_eq!((first, dst), (Some(&src[..2]), &mut [7, 7][..]));
        assert_eq!(items.take().copied(), [3, 4]);
    }

    #[test]
    fn wrong_length_names_the_operand() {
        let error = Items::new("a", 2, &[3], &[0.0_f64; 5]).map(|_| ()).map_err(|e| e.to_string());
        assert_eq!(
            error,
            Err("operand a holds 5 elements, but its dimensions ask for 6".to_owned())
        );
    }
}
