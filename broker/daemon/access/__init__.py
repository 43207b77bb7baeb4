"""Access: who may speak to this broker. Users, their secrets and their roles, read from files and watched.

    UsersFile   the file of users: a `User` has a password (`hash_password`), a `Token` or several (`new_token`,
                `split_token`) and names of certificates; `headgate user` and `headgate token` write it
    WebTokenRules   which web tokens (JWT) are good: of an issuer, for us, signed by its keys, of a file or an address;
                a token names its user and the roles of that. ALGORITHMS are all that may sign,
                ALGORITHMS_DEFAULT those that do unless it is said
    Issuer      of keys at an address: when they are fetched, and until when they are good; `fetch` gets them or raises
                `Unfetched`, and what came of it is one of FETCHES. `keys_address` checks the setting
    Gatekeeper  the files as a broker holds them; `policy` is what the core is handed (`Governed`), anew whenever a file
                changes (a `Reading`) or a token of the file expires; web tokens end in the core
    Door        says which user it is: `Door.verify` is asked with what HELLO or an HTTP request has, in a bounded pool
                of threads, and answers with a `Guest`, or with `NotLetIn` and a reason (one of KINDS) that tells
                nothing of users

`read_toml` reads a file of either kind. Bounds are in `limits`: `DoorLimits` is what strangers may cost, `IssuerLimits`
how an issuer is asked; every ACCESS_LOOK_SECONDS a broker looks at the files; TOKEN_DAYS_DEFAULT,
TOKENS_PER_USER_MAX, PASSWORD_LENGTH_GOOD and PASSWORD_LENGTH_MAX are what the command asks for.

**Contract.** `AccessError` says what is wrong with a file. A file that cannot be read, or says what cannot be
understood, changes nothing: what was read before holds, and the log says why; at a start it ends the start. No secret
is logged, and none leaves this room. Whether a user exists cannot be told from an answer, nor from how long it took.

Order of reading: `users`, `passwords`, `web_tokens`, `issuer`, `gatekeeper`, `door`, `limits`.
"""

from .door import KINDS, Door, Guest, NotLetIn
from .gatekeeper import Gatekeeper, Reading
from .issuer import FETCHES, Issuer, Unfetched, fetch, keys_address
from .limits import (
    ACCESS_LOOK_SECONDS,
    PASSWORD_LENGTH_GOOD,
    PASSWORD_LENGTH_MAX,
    TOKEN_DAYS_DEFAULT,
    TOKENS_PER_USER_MAX,
    DoorLimits,
    IssuerLimits,
)
from .passwords import hash_password
from .users import AccessError, Token, User, UsersFile, new_token, read_toml, split_token
from .web_tokens import ALGORITHMS, ALGORITHMS_DEFAULT, WebTokenRules

__all__ = [
    "ALGORITHMS",
    "ALGORITHMS_DEFAULT",
    "ACCESS_LOOK_SECONDS",
    "AccessError",
    "Door",
    "DoorLimits",
    "FETCHES",
    "Gatekeeper",
    "Guest",
    "Issuer",
    "IssuerLimits",
    "KINDS",
    "NotLetIn",
    "PASSWORD_LENGTH_MAX",
    "PASSWORD_LENGTH_GOOD",
    "Reading",
    "TOKENS_PER_USER_MAX",
    "TOKEN_DAYS_DEFAULT",
    "Token",
    "Unfetched",
    "User",
    "UsersFile",
    "WebTokenRules",
    "fetch",
    "hash_password",
    "keys_address",
    "new_token",
    "read_toml",
    "split_token",
]
