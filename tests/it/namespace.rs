//! Network namespaces: a process behind links that a test can cut.

use std::process::Command;

use crate::ports::free_address;

/// A namespace for one process, with two links to this machine: one to the server that the process
/// needs, and one for the test. It ends with the value.
pub struct Namespace {
    name: String,
    /// For each link: the address of its end on this machine, then that of its end in the namespace.
    pub links: [[String; 2]; 2],
}

/// Runs `ip`, which needs root.
#[track_caller]
fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "this test makes a network namespace, which needs root: {arguments:?} {output:?}"
    );
}

impl Namespace {
    pub fn new() -> Self {
        // The port is free on this machine, so no other test has a namespace with this name.
        let port = free_address().port();
        let name = format!("wp{port}");
        let [high, low] = port.to_be_bytes();
        let links = [0, 128].map(|part| {
            // 198.18.0.0/15 is for tests of networks (RFC 2544).
            let first = (u16::from(low & 0x1f) << 2) + part;
            [1, 2].map(|end| format!("198.18.{high}.{}", first + end))
        });
        ip(&["netns", "add", &name]);
        let network = Self { name, links };
        for (number, [here, there]) in network.links.iter().enumerate() {
            let (near, far) = (network.near(number), format!("far{number}"));
            let name = &*network.name;
            ip(&[
                "link", "add", &near, "type", "veth", "peer", "name", &far, "netns", name,
            ]);
            ip(&["address", "add", &format!("{here}/30"), "dev", &near]);
            ip(&["link", "set", &near, "up"]);
            let there = format!("{there}/30");
            ip(&["-n", name, "address", "add", &there, "dev", &far]);
            ip(&["-n", name, "link", "set", &far, "up"]);
        }
        ip(&["-n", &network.name, "link", "set", "lo", "up"]);
        network
    }

    /// Returns the command that starts a program in the namespace.
    pub fn wrapper(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.name]
    }

    /// The name of the network card of a link on this machine.
    fn near(&self, number: usize) -> String {
        format!("{}-{number}", self.name)
    }

    /// Loses everything that this machine sends over the first link: it goes to an address of no
    /// network card. The process can still send.
    pub fn lose_answers(&self) {
        let (there, near) = (&self.links[0][1], self.near(0));
        let nobody = "02:00:00:00:00:01";
        ip(&[
            "neighbour",
            "replace",
            there,
            "lladdr",
            nobody,
            "dev",
            &near,
            "nud",
            "permanent",
        ]);
    }

    /// Ends [`Self::lose_answers`]: what this machine sends over the first link arrives again.
    pub fn find_answers(&self) {
        let (there, near) = (&self.links[0][1], self.near(0));
        ip(&["neighbour", "del", there, "dev", &near]);
    }

    /// Unplugs the first link: what one side sends does not arrive at the other one.
    pub fn unplug(&self) {
        ip(&["link", "set", &self.near(0), "down"]);
    }

    /// Plugs the first link in again.
    pub fn plug_in(&self) {
        ip(&["link", "set", &self.near(0), "up"]);
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The links end with it.
        let _ended = Command::new("ip")
            .args(["netns", "del", &self.name])
            .status();
    }
}
