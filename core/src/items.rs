//! The operands of a batch: flat slices, cut into one item per matrix.

use crate::batch::Batched;
use crate::error::{Error, product};

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
/// kernel finds it in the cache.
#[derive(Debug)]
pub struct ItemsInOut<'a, T> {
    src: Option<&'a [T]>,
    dst: &'a mut [T],
    length: usize,
}

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
        let (item, rest) = std::mem::take(&mut self.dst).split_at_mut(self.length);
        self.dst = rest;
        if let Some(src) = self.src {
            let (input, rest) = src.split_at(self.length);
            self.src = Some(rest);
            item.copy_from_slice(input);
        }
        item
    }

    #[inline(always)]
    fn memory(&self, count: usize, each: &mut impl FnMut(*const u8, usize)) {
        if let Some(src) = self.src {
            of(src, count * self.length, each);
        }
        of(self.dst, count * self.length, each);
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

    #[test]
    fn wrong_length_names_the_operand() {
        let error = Items::new("a", 2, &[3], &[0.0_f64; 5]).map(|_| ()).map_err(|e| e.to_string());
        assert_eq!(
            error,
            Err("operand a holds 5 elements, but its dimensions ask for 6".to_owned())
        );
    }
}
