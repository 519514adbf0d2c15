//! The memory of the engine: counted, so that copies of long lists and texts have a limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rquickjs::allocator::{Allocator, RustAllocator};

use super::{ALLOCATED_BYTES_MAX, ALLOCATION_BYTES_MAX, PIECE_ALLOCATED_BYTES_MAX};

/// Requests up to this size are granted over the limit too, so that the engine can still make an
/// error and the interrupt handler stops the piece.
const SMALL_BYTES: usize = 1 << 10;

/// The counts of requested bytes. The same work requests the same bytes on every machine.
#[derive(Debug, Default)]
pub(super) struct Allocated {
    /// Since the page started.
    page: AtomicU64,
    /// Since the current piece started.
    piece: AtomicU64,
    is_over: AtomicBool,
    /// Whether a single request was over its limit.
    is_large: AtomicBool,
}

/// The allocator of Rust, which counts.
pub(super) struct Counting(pub(super) Arc<Allocated>);

// === impl Allocated ===

impl Allocated {
    /// Starts a piece; returns whether the page may request more.
    pub(super) fn start_piece(&self) -> bool {
        self.piece.store(0, Ordering::Relaxed);
        self.is_over.store(false, Ordering::Relaxed);
        self.is_large.store(false, Ordering::Relaxed);
        self.page.load(Ordering::Relaxed) <= ALLOCATED_BYTES_MAX
    }

    /// Returns whether the piece, or the page, has requested too much.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Returns whether a single request of the piece was too large.
    pub(super) fn is_large(&self) -> bool {
        self.is_large.load(Ordering::Relaxed)
    }

    /// Counts a request; returns whether it is granted.
    fn count(&self, bytes: usize) -> bool {
        let page = bytes as u64 + self.page.fetch_add(bytes as u64, Ordering::Relaxed);
        let piece = bytes as u64 + self.piece.fetch_add(bytes as u64, Ordering::Relaxed);
        if bytes > ALLOCATION_BYTES_MAX {
            self.is_large.store(true, Ordering::Relaxed);
            return false;
        }
        if page > ALLOCATED_BYTES_MAX || piece > PIECE_ALLOCATED_BYTES_MAX {
            self.is_over.store(true, Ordering::Relaxed);
        }
        !self.is_over() || bytes <= SMALL_BYTES
    }
}

// === impl Counting ===

#[expect(
    unsafe_code,
    reason = "the engine, which is written in C, calls an allocator with pointers"
)]
// SAFETY: each function returns null, as the trait allows, or what `RustAllocator` returns for
// the same arguments.
unsafe impl Allocator for Counting {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        match self.0.count(size) {
            true => RustAllocator.alloc(size),
            false => std::ptr::null_mut(),
        }
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        match self.0.count(count.saturating_mul(size)) {
            true => RustAllocator.calloc(count, size),
            false => std::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&mut self, ptr: *mut u8) {
        // SAFETY: `RustAllocator` has made the pointer.
        unsafe { RustAllocator.dealloc(ptr) }
    }

    unsafe fn realloc(&mut self, ptr: *mut u8, new_size: usize) -> *mut u8 {
        // SAFETY: `RustAllocator` has made the pointer.
        let is_less = unsafe { RustAllocator::usable_size(ptr) } >= new_size;
        match is_less || self.0.count(new_size) {
            // SAFETY: as above.
            true => unsafe { RustAllocator.realloc(ptr, new_size) },
            false => std::ptr::null_mut(),
        }
    }

    unsafe fn usable_size(ptr: *mut u8) -> usize {
        // SAFETY: `RustAllocator` has made the pointer.
        unsafe { RustAllocator::usable_size(ptr) }
    }
}
