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
/// The longest piece of memory that is kept, in values of its type.
const LENGTH_MAX: usize = 4 << 20;

/// Gives an encoder the memory of the encoders before it on this thread. All of it is cleared, so
/// that no encoder depends on the ones before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory;

/// A piece of memory.
#[derive(Debug)]
pub(super) struct Piece<T>(Vec<T>);

thread_local! {
    /// By the type of the values: what is free.
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
        piece.clear();
        piece.resize(length, T::default());
        Piece(piece)
    }

    fn free_cell(&mut self, piece: Piece<T>) {
        let Piece(piece) = piece;
        if piece.capacity() == 0 || piece.capacity() > LENGTH_MAX {
            return;
        }
        with_free(|free| {
            if free.len() == KEPT_MAX {
                free.remove(0);
            }
            free.push(piece);
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
