#!/bin/bash
set -euo pipefail

cat > /app/slug.sh <<'EOF'
#!/bin/bash
printf '%s' "$1" | tr '[:upper:]' '[:lower:]' | tr -cs 'a-z0-9' '-' | sed 's/^-//; s/-$//'
EOF
