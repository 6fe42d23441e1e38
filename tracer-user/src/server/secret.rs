//! Tokens and passwords: read from files or the environment, never from the command line, never shown.

use std::{env, fmt, fs, os::unix::fs::PermissionsExt, path::Path};

use anyhow::{Context, Result, bail, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};

use super::{OptionNames, target::Api};
use crate::base::say::{Level, say_at};

/// The value of the header `Authorization`. Does not print itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Authorization(String);

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorization(…)")
    }
}

impl Authorization {
    /// A token, as the interface wants it.
    pub fn token(token: &str, api: Api) -> Self {
        match api {
            Api::V2 => Self(format!("Token {token}")),
            // 1.x takes JSON web tokens so.
            Api::V1 | Api::V3 | Api::Victoria => Self(format!("Bearer {token}")),
        }
    }

    /// A user with a password.
    pub fn user(user: &str, password: &str) -> Self {
        Self(format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}"))))
    }

    /// The header's value.
    pub fn header(&self) -> &str {
        &self.0
    }
}

/// Who we are to the server, as the options say: names and files, no secret.
#[derive(Clone, Copy, Debug, Default)]
pub struct Names<'a> {
    /// A user of the server.
    pub user: Option<&'a str>,
    /// File with the user's password.
    pub password_file: Option<&'a Path>,
    /// File with a token.
    pub token_file: Option<&'a Path>,
}

/// What `names` and the environment tell of us; `None` for a server that asks nobody. `options` is what the options
/// are called.
///
/// # Errors
/// When a file cannot be read, or what is given does not fit together.
pub fn read(names: Names, api: Api, options: &OptionNames) -> Result<Option<Authorization>> {
    let OptionNames { prefix, token_variable, password_variable, .. } = options;
    let variable = |name| env::var(name).ok().filter(|text: &String| !text.is_empty());
    let token = match names.token_file {
        Some(file) => Some(read_file(file, "token")?),
        None if names.user.is_some() => None,
        None => {
            let place = format!("the variable {token_variable}");
            variable(token_variable).map(|text| fit(&text, &place)).transpose()?
        }
    };
    let Some(user) = names.user else {
        ensure!(names.password_file.is_none(), "{prefix}password-file needs {prefix}user");
        return Ok(token.map(|token| Authorization::token(&token, api)));
    };
    ensure!(
        token.is_none(),
        "both {prefix}user and {prefix}token-file are given: leave one of them out"
    );
    ensure!(!user.contains(':'), "{prefix}user: a name cannot contain a colon");
    let password = match names.password_file {
        Some(file) => read_file(file, "password")?,
        None => match variable(password_variable) {
            Some(text) => fit(&text, &format!("the variable {password_variable}"))?,
            None => bail!(
                "{prefix}user needs a password: {prefix}password-file, or {password_variable} in the environment"
            ),
        },
    };
    Ok(Some(Authorization::user(user, &password)))
}

fn read_file(file: &Path, what: &str) -> Result<String> {
    let shown = file.display();
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read the {what} in {shown}"))?;
    let mode = fs::metadata(file).map_or(0, |metadata| metadata.permissions().mode());
    if mode & 0o004 != 0 {
        let cure = "restrict it with chmod o-r";
        say_at(Level::Warning, format_args!("every user can read the {what} in {shown}: {cure}"));
    }
    fit(&text, &shown.to_string())
}

/// The secret in `text`, which lies in `place`, without the line's end.
fn fit(text: &str, place: &str) -> Result<String> {
    let text = text.trim();
    ensure!(!text.is_empty(), "{place} is empty: it must contain one line");
    // The header is one line; and a file of another kind is not to be sent to a server.
    ensure!(
        text.len() <= 8192 && text.chars().all(|c| !c.is_control()),
        "{place} contains more than one line: put only the secret into it"
    );
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::PUSH;

    #[test]
    fn each_interface_has_its_form() {
        for (api, expected) in [
            (Api::V1, "Bearer abc"),
            (Api::V2, "Token abc"),
            (Api::V3, "Bearer abc"),
            (Api::Victoria, "Bearer abc"),
        ] {
            assert_eq!(Authorization::token("abc", api).header(), expected);
        }
        let user = Authorization::user("Aladdin", "open sesame");
        assert_eq!(user.header(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "RFC 7617's example");
        assert!(!format!("{user:?}").contains("QWx"));
    }

    #[test]
    fn files_hold_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("secret");
        for (text, expected) in [("abc\n", Ok("abc")), ("abc", Ok("abc")), ("\n", Err("is empty"))]
        {
            fs::write(&file, text).unwrap();
            match (read_file(&file, "token"), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(error), Err(word)) => assert!(error.to_string().contains(word), "{error}"),
                other => panic!("{other:?}"),
            }
        }
        fs::write(&file, "a\nb\n").unwrap();
        let error = read_file(&file, "token").unwrap_err().to_string();
        assert!(error.contains("more than one line"), "{error}");
    }

    #[test]
    fn a_user_and_a_token_are_too_much() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("secret");
        fs::write(&file, "abc\n").unwrap();
        let given = |user, token: bool, password: bool| Names {
            user,
            token_file: token.then_some(&*file),
            password_file: password.then_some(&*file),
        };
        for (names, word) in [
            (given(Some("ada"), true, true), "both --user"),
            (given(None, false, true), "needs --user"),
            (given(Some("a:b"), false, true), "colon"),
        ] {
            let error = read(names, Api::V1, &PUSH).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        let found = read(given(Some("ada"), false, true), Api::V1, &PUSH).unwrap();
        assert_eq!(found, Some(Authorization::user("ada", "abc")));
        let found = read(given(None, true, false), Api::V2, &PUSH).unwrap();
        assert_eq!(found, Some(Authorization::token("abc", Api::V2)));
    }
}
