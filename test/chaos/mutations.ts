/** One workspace and one tool run that needs every kind of operation a commit knows. */
export const before = [
  "echo keep > keep; echo old > modify; echo gone > delete; echo a > rename-me; echo m > mode; chmod 644 mode",
  "mkdir -p tree/deep/er; echo 1 > tree/1; echo 2 > tree/deep/2; ln -s ../1 tree/deep/er/l",
  "mkdir to-file; echo x > to-file/x; echo y > to-folder; mkdir to-link; echo z > to-link/z; ln -s keep link",
  "mkdir opaque; echo 1 > opaque/1; echo 2 > opaque/2; mkdir shut; echo s > shut/s; mkdir folder-mode; echo f > folder-mode/f",
].join("; ")

export const run = [
  "echo new > modify; rm delete; mv rename-me renamed; chmod 755 mode; echo n > created; mkdir -p fresh/a/b; echo 1 > fresh/1; echo 2 > fresh/a/b/2",
  "rm -r tree; rm -r to-file; echo f > to-file; rm to-folder; mkdir to-folder; echo g > to-folder/g; rm -r to-link; ln -s keep to-link; ln -sfn modify link",
  "rm -r opaque; mkdir opaque; echo two > opaque/2; echo 3 > opaque/3; chmod 700 shut; rm shut/s; echo t > shut/t; chmod 500 shut; chmod 711 folder-mode",
  "mkdir -p closed/in; echo c > closed/in/c; chmod 0 closed/in closed",
  "echo h > h1; ln h1 h2; ln h1 fresh/h3; : > \"$(printf 'bad\\377')\"",
].join("; ")
