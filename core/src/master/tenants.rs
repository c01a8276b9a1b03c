//! Tenants: names outside, numbers inside.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::TenantError;
use crate::id::TenantId;
use crate::key::{DEFAULT_TENANT, MAX_NAME};

/// The tenants, numbered in the order in which they came.
#[derive(Debug)]
pub(super) struct Tenants {
    names: Vec<Box<str>>,
    numbers: BTreeMap<Box<str>, TenantId>,
    max: u32,
}

impl Tenants {
    /// The default tenant, which is number 0.
    pub(super) fn new(max: u32) -> Self {
        let numbers = BTreeMap::from([(DEFAULT_TENANT.into(), TenantId(0))]);
        Self { names: vec![DEFAULT_TENANT.into()], numbers, max: max.max(1) }
    }

    pub(super) fn number(&mut self, name: &str) -> Result<TenantId, TenantError> {
        if let Some(&number) = self.numbers.get(name) {
            return Ok(number);
        }
        if !(1..=MAX_NAME).contains(&name.len()) {
            return Err(TenantError::Name);
        }
        if self.names.len() >= self.max as usize {
            return Err(TenantError::Full);
        }
        let number = TenantId(self.names.len() as u32);
        self.names.push(name.into());
        self.numbers.insert(name.into(), number);
        Ok(number)
    }

    pub(super) fn name(&self, tenant: TenantId) -> Option<&str> {
        self.names.get(tenant.0 as usize).map(|name| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_and_are_bounded() {
        let mut tenants = Tenants::new(3);
        assert_eq!(tenants.number(DEFAULT_TENANT), Ok(TenantId(0)));
        assert_eq!(tenants.number("a"), Ok(TenantId(1)));
        assert_eq!((tenants.number("b"), tenants.number("a")), (Ok(TenantId(2)), Ok(TenantId(1))));
        assert_eq!(tenants.number("c"), Err(TenantError::Full));
        assert_eq!(tenants.number(""), Err(TenantError::Name));
        assert_eq!((tenants.name(TenantId(2)), tenants.name(TenantId(3))), (Some("b"), None));
    }
}
