//! Running other programs, and what can go wrong with it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A task that did not work out, in words for the person who called it.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    pub fn new(message: impl Into<String>) -> Failure {
        Failure(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub type Result<T = ()> = std::result::Result<T, Failure>;

/// Says which file an I/O error is about.
pub trait Context<T> {
    fn about(self, what: impl fmt::Display) -> Result<T>;
}

impl<T> Context<T> for std::io::Result<T> {
    fn about(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|e| Failure::new(format!("{what}: {e}")))
    }
}

/// The repository's root.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// Where the workspace's build products are.
pub fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// The cargo that runs this program (rustup's choice for the workspace), in the repository's root.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs to the end with its output shown; anything but exit code 0 is a failure.
pub fn run(command: &mut Command) -> Result {
    eprintln!("    $ {}", describe(command));
    let status = command
        .stdin(Stdio::null())
        .status()
        .about(command.get_program().to_string_lossy())?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::new(format!("`{}`: {status}", describe(command))))
    }
}

/// Runs to the end and returns what it printed.
pub fn capture(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .about(command.get_program().to_string_lossy())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::new(format!(
            "`{}`: {}\n{}",
            describe(command),
            output.status,
            said.trim_end()
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn describe(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|a| a.to_string_lossy().into_owned()));
    words.join(" ")
}

/// The files of a folder with this ending, sorted; none when there is no such folder.
pub fn files_in(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == ending))
        .collect();
    files.sort();
    files
}

pub fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).about(path.display())
}

pub fn write(path: &Path, text: impl AsRef<[u8]>) -> Result {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).about(folder.display())?;
    }
    std::fs::write(path, text).about(path.display())
}

pub fn copy(from: &Path, to: &Path) -> Result {
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).about(folder.display())?;
    }
    std::fs::copy(from, to).map(|_| ()).about(format_args!(
        "{} -> {}",
        from.display(),
        to.display()
    ))
}
