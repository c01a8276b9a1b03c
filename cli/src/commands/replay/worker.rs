//! One request after another: reads the longest prefix of resident blocks, stores the rest.

use springtide::{Client, Code, Error, Memory, Piece, Presence, PutOptions, Runtime, Tokio};

use super::content;
use crate::reports::replay::Tally;

/// Blocks that one call moves.
pub(super) const BATCH: usize = 64;

/// A client, and registered memory for one batch.
pub(super) struct Worker {
    client: Client<Tokio>,
    runtime: Tokio,
    memory: Memory,
    scratch: Vec<u8>,
    block: u64,
    pub(super) tally: Tally,
}

impl Worker {
    pub(super) fn new(client: Client<Tokio>, runtime: Tokio, block: u64) -> Result<Self, Error> {
        let memory = client.allocate(block * BATCH as u64)?;
        let scratch = vec![0; block as usize];
        Ok(Self { client, runtime, memory, scratch, block, tally: Tally::default() })
    }

    /// Serves one request.
    pub(super) async fn request(&mut self, blocks: &[u64]) {
        self.tally.requests += 1;
        self.tally.blocks += blocks.len() as u64;
        let resident = self.resident(blocks).await;
        let mut read = 0;
        for batch in blocks[..resident].chunks(BATCH) {
            let got = self.read(batch).await;
            read += got;
            if got < batch.len() {
                break;
            }
        }
        self.tally.hits += read as u64;
        for batch in blocks[read..].chunks(BATCH) {
            if !self.store(batch).await {
                break;
            }
        }
    }

    fn note(&mut self, what: &str, error: &Error) {
        self.tally.errors += 1;
        self.tally.first_error.get_or_insert_with(|| format!("{what}: {error}"));
    }

    /// How many blocks from the front on are there.
    async fn resident(&mut self, blocks: &[u64]) -> usize {
        let keys: Vec<_> = blocks.iter().map(|&id| content::key(id)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let present = self.client.exists_batch(&keys).await;
        if let Some(Err(error)) = present.first() {
            self.note("exists", error);
        }
        present.iter().take_while(|present| matches!(present, Ok(Presence::Present))).count()
    }

    /// Reads and checks `batch`; gives back how many from the front on were there.
    async fn read(&mut self, batch: &[u64]) -> usize {
        let keys: Vec<_> = batch.iter().map(|&id| content::key(id)).collect();
        let mut pieces = Vec::with_capacity(batch.len());
        for (place, key) in keys.iter().enumerate() {
            let Ok(into) = self.memory.slice(place as u64 * self.block, self.block) else { return 0 };
            pieces.push(Piece { key, at: 0, len: None, into });
        }
        let begun = self.runtime.now();
        let results = self.client.get_pieces(&pieces).await;
        self.tally.get.record(self.runtime.now().since(begun));
        drop(pieces);
        let mut prefix = 0;
        for (place, (result, &id)) in results.iter().zip(batch).enumerate() {
            match result {
                Ok(bytes) => {
                    self.check(place, id, *bytes);
                    prefix += usize::from(prefix == place);
                }
                // Evicted between looking and reading: the prefix ends here.
                Err(error) if error.code() == Code::OBJECT_NOT_FOUND => {}
                Err(error) => self.note("get", error),
            }
        }
        prefix
    }

    fn check(&mut self, place: usize, id: u64, bytes: u64) {
        let begun = self.runtime.now();
        let read = self.memory.read(place as u64 * self.block, &mut self.scratch);
        let good = bytes == self.block && read.is_ok() && content::is(id, &self.scratch);
        self.tally.verify_errors += u64::from(!good);
        self.tally.bytes_read += bytes;
        self.tally.content += self.runtime.now().since(begun);
    }

    /// Stores `batch`; whether it is worth going on with the next.
    async fn store(&mut self, batch: &[u64]) -> bool {
        let begun = self.runtime.now();
        for (place, &id) in batch.iter().enumerate() {
            content::fill(id, &mut self.scratch);
            if let Err(error) = self.memory.write(place as u64 * self.block, &self.scratch) {
                self.note("put", &error);
                return false;
            }
        }
        self.tally.content += self.runtime.now().since(begun);
        let keys: Vec<_> = batch.iter().map(|&id| content::key(id)).collect();
        let mut items = Vec::with_capacity(batch.len());
        for (place, key) in keys.iter().enumerate() {
            let Ok(value) = self.memory.slice(place as u64 * self.block, self.block) else { return false };
            items.push((&key[..], value));
        }
        let begun = self.runtime.now();
        let results = self.client.put_from_batch(&items, &PutOptions::default()).await;
        self.tally.put.record(self.runtime.now().since(begun));
        drop(items);
        let mut room = true;
        for result in &results {
            match result {
                Ok(()) => self.tally.bytes_written += self.block,
                // Another worker stored it meanwhile.
                Err(error) if error.code() == Code::OBJECT_ALREADY_EXISTS => {}
                Err(error) if error.code() == Code::NO_AVAILABLE_HANDLE => {
                    self.tally.not_stored += 1;
                    room = false;
                }
                Err(error) => self.note("put", error),
            }
        }
        room
    }
}
