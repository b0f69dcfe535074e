//! Takes out of the archive of Swagger UI what `/docs` serves. All else in it (source maps, other builds) would make the
//! programs with the interface ten megabytes larger.

use std::{
    env,
    error::Error,
    fs,
    io::{Cursor, Read},
    path::Path,
};

use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;
use zip::ZipArchive;

const SERVED: [&str; 3] = ["swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    let mut archive = ZipArchive::new(Cursor::new(SWAGGER_UI_VENDORED))?;
    for name in SERVED {
        // The first folder's name has the version.
        let ending = format!("/dist/{name}");
        let at = (0..archive.len())
            .find(|at| {
                archive.name_for_index(*at).is_some_and(|path| path.is_ok_and(|path| path.ends_with(&ending)))
            })
            .ok_or_else(|| format!("Swagger UI has no {name}"))?;
        let mut bytes = Vec::new();
        archive.by_index(at)?.read_to_end(&mut bytes)?;
        fs::write(Path::new(&folder).join(name), bytes)?;
    }
    Ok(())
}
