"""The page: static files that a browser loads as they lie here, with no build step and from no other host.

It parses and renders; every answer comes from the API (`evsched.api`), which serves this folder.
`app.js` is where to begin reading; one view is one file of ``views``. What is not ours lies in
``vendor``, with hashes and licences (`make vendor`).
"""
