//! The memory of brotli encoders, kept by each thread for its next document.
//!
//! An encoder has tables of a megabyte. With new memory for each of thousands of pages, the system
//! would spend a fifth of a build on clearing it.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::HashMap;

use brotli::enc::{Allocator, BrotliAlloc, SliceWrapper, SliceWrapperMut};

/// How many pieces of memory of one type a thread keeps.
const KEPT_MAX: usize = 6;
/// The shortest piece of memory that is kept, in values of its type. For shorter ones the allocator
/// is as fast.
const LENGTH_MIN: usize = 1 << 10;
/// The longest piece of memory that is kept, in values of its type.
const LENGTH_MAX: usize = 4 << 20;
/// From this length on, `u32` values are the positions in a hash table (brotli 9.1, `AdvHasher`).
/// The encoder reads only as many of them as it has written: their number is in another table,
/// which is cleared. So these are not cleared.
const POSITIONS_MIN: usize = 1 << 18;

/// Gives an encoder the memory of the encoders before it on this thread. What an encoder reads
/// before it writes is cleared, so that no encoder depends on the ones before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory;

/// A piece of memory.
#[derive(Debug)]
pub(super) struct Piece<T>(Vec<T>);

thread_local! {
    /// The free values, by their type.
    static FREE: RefCell<HashMap<TypeId, Box<dyn Any>>> = RefCell::default();
}

/// Calls a function with the free memory of a type.
fn with_free<T: 'static, R>(act: impl FnOnce(&mut Vec<Vec<T>>) -> R) -> Option<R> {
    FREE.with_borrow_mut(|free| {
        let free = free
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Box::new(Vec::<Vec<T>>::new()));
        free.downcast_mut().map(act)
    })
}

// === impl Memory ===

impl BrotliAlloc for Memory {}

impl<T: Clone + Default + 'static> Allocator<T> for Memory {
    type AllocatedMemory = Piece<T>;

    fn alloc_cell(&mut self, length: usize) -> Piece<T> {
        if length == 0 {
            return Piece::default();
        }
        if length < LENGTH_MIN {
            return Piece(vec![T::default(); length]);
        }
        // Much longer memory than needed is left for those who need it.
        let fits = |piece: &Vec<T>| (length..=4 * length).contains(&piece.capacity());
        let found = with_free(|free| {
            let fitting = free.iter().enumerate().filter(|(_, piece)| fits(piece));
            let smallest = fitting.min_by_key(|(_, piece)| piece.capacity());
            let at = smallest.map(|(at, _)| at);
            at.map(|at| free.swap_remove(at))
        });
        let mut piece = found
            .flatten()
            .unwrap_or_else(|| Vec::with_capacity(length.next_power_of_two()));
        if length < POSITIONS_MIN || TypeId::of::<T>() != TypeId::of::<u32>() {
            piece.clear();
        }
        piece.resize(length, T::default());
        Piece(piece)
    }

    fn free_cell(&mut self, piece: Piece<T>) {
        let Piece(piece) = piece;
        if !(LENGTH_MIN..=LENGTH_MAX).contains(&piece.capacity()) {
            return;
        }
        with_free(|free| {
            free.push(piece);
            if free.len() > KEPT_MAX {
                let pieces = free.iter().enumerate();
                let shortest = pieces.min_by_key(|(_, piece)| piece.capacity());
                shortest.map(|(at, _)| at).map(|at| free.swap_remove(at));
            }
        });
    }
}

// === impl Piece ===

impl<T> Default for Piece<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> SliceWrapper<T> for Piece<T> {
    fn slice(&self) -> &[T] {
        &self.0
    }
}

impl<T> SliceWrapperMut<T> for Piece<T> {
    fn slice_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::Encoding;
    use super::super::encoding::Effort;

    /// Returns a text of words in an order that depends on a number, with repetitions.
    fn text(number: u64, words: usize) -> Vec<u8> {
        let mut state = number;
        let word = |_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            format!("word{} ", (state >> 50) % 700)
        };
        (0..words).map(word).collect::<String>().into_bytes()
    }

    #[test]
    fn no_document_depends_on_the_documents_before_it() {
        let lengths = [200, 9000, 400, 150_000, 3000, 40_000, 700];
        let texts: Vec<_> = (1..)
            .zip(lengths)
            .map(|(n, words)| text(n, words))
            .collect();
        let encode = |text: &Vec<u8>| Encoding::Brotli.encode(text, Effort::Page).unwrap();
        // Each on a thread that has encoded nothing.
        let alone: Vec<_> = texts
            .iter()
            .map(|text| std::thread::scope(|scope| scope.spawn(|| encode(text)).join().unwrap()))
            .collect();
        for order in [
            [0, 1, 2, 3, 4, 5, 6],
            [6, 5, 4, 3, 2, 1, 0],
            [3, 0, 3, 2, 5, 1, 4],
        ] {
            for at in order {
                assert!(encode(&texts[at]) == alone[at], "{at}");
            }
        }
    }
}
