//! Reading.

use springtide_core::error::Code;
use springtide_driver::Runtime;

use crate::memory::Slice;
use crate::parts::Parts;
use crate::trip::Place;
use crate::{Client, Error, same};

/// What to read, and where to put it.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The object's key.
    pub key: &'a [u8],
    /// The first byte wanted.
    pub at: u64,
    /// How many bytes; `None` for all from `at` on.
    pub len: Option<u64>,
    /// Where to put them; longer is allowed.
    pub into: Slice<'a>,
}

impl<R: Runtime> Client<R> {
    /// The value of `key`.
    ///
    /// # Errors
    /// [`Code::OBJECT_NOT_FOUND`], [`Code::REPLICA_IS_NOT_READY`] while it is being written, [`Code::CHECKSUM_MISMATCH`]
    /// when no replica has the right bytes, [`Code::TRANSFER_FAIL`] when none can be reached.
    pub async fn get(&self, key: &[u8]) -> Result<Vec<u8>, Error> {
        self.get_batch(&[key]).await.pop().unwrap_or_else(|| Err(Code::INTERNAL_ERROR.into()))
    }

    /// The values of `keys`, in their order, each with its own result. A key that stands there twice is looked up and
    /// moved once (S3A-112).
    pub async fn get_batch(&self, keys: &[&[u8]]) -> Vec<Result<Vec<u8>, Error>> {
        let Some(firsts) = same::firsts(keys) else { return self.values(keys).await };
        let mut distinct: Vec<&[u8]> = Vec::with_capacity(keys.len());
        let mut positions: Vec<usize> = Vec::with_capacity(keys.len());
        for (at, &first) in firsts.iter().enumerate() {
            if first == at {
                positions.push(distinct.len());
                distinct.push(keys[at]);
            } else {
                positions.push(positions[first]);
            }
        }
        let values = self.values(&distinct).await;
        positions.into_iter().map(|position| values[position].clone()).collect()
    }

    /// The values of keys that differ.
    async fn values(&self, keys: &[&[u8]]) -> Vec<Result<Vec<u8>, Error>> {
        let mut places: Vec<Place<'_>> = keys.iter().map(|_| Place::owned()).collect();
        let results = self.read(keys, &mut places, self.deadline()).await;
        let owned = results.into_iter().zip(&places).map(|(result, place)| {
            let len = result?;
            let mut value = vec![0; len as usize];
            place.copy_out(&mut [&mut value])?;
            Ok(value)
        });
        owned.collect()
    }

    /// Reads the value of `key` into several pieces of memory, one after the other; gives back its length. For memory
    /// that is not registered: the bytes pass through memory that is, and are checked before they are copied.
    ///
    /// # Errors
    /// As [`get`](Self::get), and [`Code::INVALID_PARAMS`] when the value is longer than all `parts` together; no byte
    /// is moved then.
    pub async fn get_parts(&self, key: &[u8], parts: &mut [&mut [u8]]) -> Result<u64, Error> {
        let mut results = self.get_parts_batch(&mut [(key, parts)]).await;
        results.pop().unwrap_or_else(|| Err(Code::INTERNAL_ERROR.into()))
    }

    /// [`get_parts`](Self::get_parts) for many values, each with its own result.
    pub async fn get_parts_batch(&self, items: &mut [(&[u8], &mut [&mut [u8]])]) -> Vec<Result<u64, Error>> {
        let keys: Vec<&[u8]> = items.iter().map(|(key, _)| *key).collect();
        // Slices all lie in one address space, so their lengths add up.
        let room = |parts: &[&mut [u8]]| parts.iter().map(|part| part.len() as u64).sum();
        let places = items.iter().map(|(_, parts)| Place::Owned { lease: None, room: Some(room(parts)) });
        let mut places: Vec<Place<'_>> = places.collect();
        let results = self.read(&keys, &mut places, self.deadline()).await;
        let copied = results.into_iter().zip(&places).zip(items).map(|((result, place), (_, parts))| {
            let len = result?;
            let mut left = len as usize;
            let mut cut: Vec<&mut [u8]> = Vec::with_capacity(parts.len());
            for part in parts.iter_mut() {
                let here = part.len().min(left);
                cut.push(&mut part[..here]);
                left -= here;
            }
            place.copy_out(&mut cut)?;
            Ok(len)
        });
        copied.collect()
    }

    /// Reads the value of `key` into several pieces of registered memory, one after the other, without a copy; gives
    /// back its length. Pieces may be empty, and together longer than the value.
    ///
    /// # Errors
    /// As [`get`](Self::get), and [`Code::INVALID_PARAMS`] when the value is longer than all `parts` together, or one
    /// of them was registered with another client; no byte is moved then.
    pub async fn get_into_parts(&self, key: &[u8], parts: &[Slice<'_>]) -> Result<u64, Error> {
        let mut results = self.get_into_parts_batch(&[(key, parts)]).await;
        results.pop().unwrap_or_else(|| Err(Code::INTERNAL_ERROR.into()))
    }

    /// [`get_into_parts`](Self::get_into_parts) for many values, each with its own result. All pieces of all values
    /// move in one batch.
    pub async fn get_into_parts_batch(&self, items: &[(&[u8], &[Slice<'_>])]) -> Vec<Result<u64, Error>> {
        let keys: Vec<&[u8]> = items.iter().map(|(key, _)| *key).collect();
        let mut places: Vec<Place<'_>> = items.iter().map(|(_, parts)| Place::list(parts)).collect();
        self.read(&keys, &mut places, self.deadline()).await
    }

    /// Reads the value of `key` to the front of `into`, without a copy; gives back its length.
    ///
    /// # Errors
    /// As [`get`](Self::get), and [`Code::BUFFER_OVERFLOW`] when the value is longer than `into`.
    pub async fn get_into(&self, key: &[u8], into: Slice<'_>) -> Result<u64, Error> {
        let piece = Piece { key, at: 0, len: None, into };
        self.get_pieces(&[piece]).await.pop().unwrap_or_else(|| Err(Code::INTERNAL_ERROR.into()))
    }

    /// Reads many pieces of values, each with its own result: the bytes read (S3A-110…113). A key may stand there more
    /// than once, and is looked up once. Whole values and unchecked ones move without a copy; a piece of a checked value
    /// is read by whole blocks, checked and copied, once for pieces of the same blocks (S3A-112).
    pub async fn get_pieces(&self, pieces: &[Piece<'_>]) -> Vec<Result<u64, Error>> {
        let keys: Vec<&[u8]> = pieces.iter().map(|piece| piece.key).collect();
        let places =
            pieces.iter().map(|&Piece { at, len, into, .. }| Place::Into { at, len, into: Parts::one(into) });
        let mut places: Vec<Place<'_>> = places.collect();
        self.read(&keys, &mut places, self.deadline()).await
    }
}
